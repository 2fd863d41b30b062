// Memory descriptors: strides and inner blocks are parsed from a tag's spelling.
#include <algorithm>
#include <cctype>

#include "objects.h"

namespace dnnl {

namespace {

const char* spelling_of(memory::format_tag tag) {
  switch (tag) {
#define DNNL_FORMAT_TAG(name) \
  case memory::format_tag::name: return #name;
#include "oneapi/dnnl/format_tags.def"
    default: return nullptr;
  }
}

struct Layout {
  std::vector<std::size_t> order;     // dims, outermost first
  memory::dims blocks, blocked_dims;  // inner blocks, outermost first
};

// "aBcd16b": dims a, b, c, d, then a block of 16 of b.
Layout parse(const std::string& text) {
  Layout layout;
  std::size_t i = 0;
  for (; i < text.size() && std::isalpha(static_cast<unsigned char>(text[i])) != 0; ++i)
    layout.order.push_back(static_cast<std::size_t>(std::tolower(static_cast<unsigned char>(text[i])) - 'a'));
  while (i < text.size()) {
    memory::dim block = 0;
    for (; std::isdigit(static_cast<unsigned char>(text[i])) != 0; ++i) block = block * 10 + (text[i] - '0');
    layout.blocks.push_back(block);
    layout.blocked_dims.push_back(text[i++] - 'a');
  }
  return layout;
}

memory::dim checked_product(memory::dim a, memory::dim b) {
  memory::dim product = 0;
  if (__builtin_mul_overflow(a, b, &product)) fail(dnnl_invalid_arguments, "memory descriptor: its size does not fit 64 bits");
  return product;
}

void check(const memory::dims& dims, memory::data_type type) {
  if (dims.size() > DNNL_MAX_NDIMS)
    fail(dnnl_invalid_arguments, "memory descriptor: it has " + std::to_string(dims.size()) + " dims, allowed is up to 12");
  for (const memory::dim extent : dims) {
    if (extent < 0)
      fail(dnnl_invalid_arguments, "memory descriptor: a dim is " + std::to_string(extent) + ", allowed is 0 or more");
  }
  if (!dims.empty() && memory::data_type_size(type) == 0)
    fail(dnnl_invalid_arguments, "memory descriptor: the data type is undef, allowed are f16, bf16, f32, s32, s8, u8, f64");
}

void check_strides(const memory::dims& dims, const memory::dims& strides) {
  if (strides.size() != dims.size())
    fail(dnnl_invalid_arguments,
         "memory descriptor: " + std::to_string(dims.size()) + " dims, " + std::to_string(strides.size()) + " strides");
  for (const memory::dim stride : strides) {
    if (stride < 0)
      fail(dnnl_invalid_arguments, "memory descriptor: a stride is " + std::to_string(stride) + ", allowed is 0 or more");
  }
}

}  // namespace

std::size_t memory::data_type_size(data_type adata_type) {
  switch (adata_type) {
    case data_type::f16:
    case data_type::bf16: return 2;
    case data_type::f32:
    case data_type::s32: return 4;
    case data_type::s8:
    case data_type::u8: return 1;
    case data_type::f64: return 8;
    default: return 0;
  }
}

memory::desc::desc(const dims& adims, data_type adata_type, format_tag aformat_tag, bool allow_empty) {
  try {
    check(adims, adata_type);
    dims_ = padded_dims_ = adims;
    data_type_ = adata_type;
    set_tag(aformat_tag);
  } catch (const error&) {
    *this = desc();
    if (!allow_empty) throw;
  }
}

memory::desc::desc(const dims& adims, data_type adata_type, const dims& strides, bool allow_empty) {
  try {
    check(adims, adata_type);
    check_strides(adims, strides);
    dims_ = padded_dims_ = adims;
    strides_ = strides;
    data_type_ = adata_type;
    format_kind_ = format_kind::blocked;
  } catch (const error&) {
    if (!allow_empty) throw;
  }
}

void memory::desc::set_tag(format_tag tag) {
  if (tag == format_tag::any) {
    format_kind_ = format_kind::any;
    return;
  }
  const char* const spelling = spelling_of(tag);
  if (spelling == nullptr) {
    if (dims_.empty()) return;
    fail(dnnl_invalid_arguments, "memory descriptor: format tag " + std::to_string(static_cast<int>(tag)) + " does not exist");
  }
  const Layout layout = parse(spelling);
  if (layout.order.size() != dims_.size())
    fail(dnnl_invalid_arguments, std::string("memory descriptor: format ") + spelling + " is for " +
                                     std::to_string(layout.order.size()) + " dims, the tensor has " +
                                     std::to_string(dims_.size()));
  format_kind_ = format_kind::blocked;
  inner_blocks_ = layout.blocks;
  inner_dims_ = layout.blocked_dims;
  dims whole(dims_.size(), 1);  // number of elements of one block along each dim
  dim stride = 1;
  for (std::size_t i = 0; i < layout.blocks.size(); ++i) {
    whole[static_cast<std::size_t>(layout.blocked_dims[i])] *= layout.blocks[i];
    stride *= layout.blocks[i];
  }
  strides_.assign(dims_.size(), 0);
  for (std::size_t d = 0; d < dims_.size(); ++d)
    padded_dims_[d] = checked_product(dims_[d] / whole[d] + (dims_[d] % whole[d] != 0 ? 1 : 0), whole[d]);
  for (auto d = layout.order.rbegin(); d != layout.order.rend(); ++d) {
    strides_[*d] = stride;
    stride = checked_product(stride, std::max<dim>(padded_dims_[*d] / whole[*d], 1));
  }
}

std::size_t memory::desc::get_size() const {
  if (format_kind_ != format_kind::blocked) return 0;
  dims whole(dims_.size(), 1);
  dim elements = 1;  // elements of the inner blocks, then up to the last element
  for (std::size_t i = 0; i < inner_blocks_.size(); ++i) {
    whole[static_cast<std::size_t>(inner_dims_[i])] *= inner_blocks_[i];
    elements *= inner_blocks_[i];
  }
  for (std::size_t d = 0; d < dims_.size(); ++d) {
    if (dims_[d] == 0) return 0;
    elements += checked_product(padded_dims_[d] / whole[d] - 1, strides_[d]);
  }
  return static_cast<std::size_t>(checked_product(elements, static_cast<dim>(data_type_size(data_type_))));
}

// Compares shapes, types and element addresses: the stride of a dim of extent 1 is ignored.
bool memory::desc::operator==(const desc& other) const {
  if (dims_ != other.dims_ || data_type_ != other.data_type_ || format_kind_ != other.format_kind_ ||
      inner_blocks_ != other.inner_blocks_ || inner_dims_ != other.inner_dims_ || padded_dims_ != other.padded_dims_)
    return false;
  for (std::size_t d = 0; d < strides_.size(); ++d)
    if (padded_dims_[d] != 1 && strides_[d] != other.strides_[d]) return false;
  return true;
}

}  // namespace dnnl

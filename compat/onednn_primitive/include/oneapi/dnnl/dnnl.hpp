// oneDNN's primitive interface for layer normalization, over lamina: a program written for oneDNN compiles with this header.
//
// It contains engine, stream, memory and its descriptors, attributes, and layer_normalization_forward and _backward. Each
// primitive builds a graph, compiles it once and executes it (graph/layer_norm.h). A call that fails throws dnnl::error,
// whose what() is lamina's sentence, the same as lamina_last_error().
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "oneapi/dnnl/dnnl_types.h"

namespace dnnl {

enum class status {
  success = dnnl_success,
  out_of_memory = dnnl_out_of_memory,
  invalid_arguments = dnnl_invalid_arguments,
  unimplemented = dnnl_unimplemented,
  last_impl_reached = dnnl_last_impl_reached,
  runtime_error = dnnl_runtime_error,
  not_required = dnnl_not_required,
};

struct DNNL_API error : public std::exception {
  dnnl_status_t status;
  const char* message;

  error(dnnl_status_t astatus, const char* amessage);
  const char* what() const noexcept override { return message; }

 private:
  std::shared_ptr<const std::string> text_;  // shared by copies, so that `message` stays valid
};

enum class prop_kind {
  undef = dnnl_prop_kind_undef,
  forward_training = dnnl_forward_training,
  forward_inference = dnnl_forward_inference,
  forward = dnnl_forward,
  backward = dnnl_backward,
  backward_data = dnnl_backward_data,
  backward_weights = dnnl_backward_weights,
  backward_bias = dnnl_backward_bias,
};

enum class normalization_flags : unsigned {
  none = dnnl_normalization_flags_none,
  use_global_stats = dnnl_use_global_stats,
  use_scale = dnnl_use_scale,
  use_shift = dnnl_use_shift,
  fuse_norm_relu = dnnl_fuse_norm_relu,
  fuse_norm_add_relu = dnnl_fuse_norm_add_relu,
  rms_norm = dnnl_rms_norm,
};

constexpr normalization_flags operator|(normalization_flags a, normalization_flags b) {
  return static_cast<normalization_flags>(static_cast<unsigned>(a) | static_cast<unsigned>(b));
}
constexpr normalization_flags operator&(normalization_flags a, normalization_flags b) {
  return static_cast<normalization_flags>(static_cast<unsigned>(a) & static_cast<unsigned>(b));
}
constexpr normalization_flags operator^(normalization_flags a, normalization_flags b) {
  return static_cast<normalization_flags>(static_cast<unsigned>(a) ^ static_cast<unsigned>(b));
}
constexpr normalization_flags operator~(normalization_flags a) {
  return static_cast<normalization_flags>(~static_cast<unsigned>(a));
}
inline normalization_flags& operator|=(normalization_flags& a, normalization_flags b) { return a = a | b; }
inline normalization_flags& operator&=(normalization_flags& a, normalization_flags b) { return a = a & b; }
inline normalization_flags& operator^=(normalization_flags& a, normalization_flags b) { return a = a ^ b; }

enum class scratchpad_mode {
  library = dnnl_scratchpad_mode_library,
  user = dnnl_scratchpad_mode_user,
};

namespace detail {
struct engine_object;
struct stream_object;
struct memory_object;
struct layer_norm_object;
}  // namespace detail

struct DNNL_API engine {
  enum class kind { any = dnnl_any_engine, cpu = dnnl_cpu, gpu = dnnl_gpu };

  engine() = default;
  engine(kind akind, std::size_t index);
  static std::size_t get_count(kind akind);
  kind get_kind() const;
  explicit operator bool() const { return object_ != nullptr; }
  bool operator==(const engine& other) const { return object_ == other.object_; }
  bool operator!=(const engine& other) const { return object_ != other.object_; }

  const detail::engine_object& object() const;  // throws when empty

 private:
  std::shared_ptr<const detail::engine_object> object_;
};

struct DNNL_API stream {
  enum class flags : unsigned {
    in_order = dnnl_stream_in_order,
    out_of_order = dnnl_stream_out_of_order,
    default_flags = dnnl_stream_default_flags,
  };

  stream() = default;
  stream(const engine& aengine, flags aflags = flags::default_flags);
  engine get_engine() const;
  stream& wait();
  explicit operator bool() const { return object_ != nullptr; }

  const detail::stream_object& object() const;  // throws when empty

 private:
  std::shared_ptr<const detail::stream_object> object_;
};

struct DNNL_API memory {
  using dim = dnnl_dim_t;
  using dims = std::vector<dim>;

  enum class data_type {
    undef = dnnl_data_type_undef,
    f16 = dnnl_f16,
    bf16 = dnnl_bf16,
    f32 = dnnl_f32,
    s32 = dnnl_s32,
    s8 = dnnl_s8,
    u8 = dnnl_u8,
    f64 = dnnl_f64,
  };
  static std::size_t data_type_size(data_type adata_type);

  enum class format_kind { undef = dnnl_format_kind_undef, any = dnnl_format_kind_any, blocked = dnnl_blocked };

  enum class format_tag {
    undef = 0,
    any = 1,
#define DNNL_FORMAT_TAG(name) name,
#include "oneapi/dnnl/format_tags.def"
    format_tag_last,
#define DNNL_FORMAT_TAG(name)
#define DNNL_FORMAT_TAG_ALIAS(name, tag) name = tag,
#include "oneapi/dnnl/format_tags.def"
  };

  // Shape, type and layout. A blocked layout is strides between whole blocks plus the inner blocks, outermost first.
  struct DNNL_API desc {
    desc() = default;  // describes no memory
    desc(const dims& adims, data_type adata_type, format_tag aformat_tag, bool allow_empty = false);
    desc(const dims& adims, data_type adata_type, const dims& strides, bool allow_empty = false);

    int get_ndims() const { return static_cast<int>(dims_.size()); }
    dims get_dims() const { return dims_; }
    dims get_padded_dims() const { return padded_dims_; }
    dims get_strides() const { return strides_; }
    data_type get_data_type() const { return data_type_; }
    format_kind get_format_kind() const { return format_kind_; }
    int get_inner_nblks() const { return static_cast<int>(inner_blocks_.size()); }
    dims get_inner_blks() const { return inner_blocks_; }
    dims get_inner_idxs() const { return inner_dims_; }
    std::size_t get_size() const;  // bytes, padding included
    bool is_zero() const { return dims_.empty(); }
    explicit operator bool() const { return !is_zero(); }
    bool operator==(const desc& other) const;
    bool operator!=(const desc& other) const { return !(*this == other); }

   private:
    void set_tag(format_tag tag);

    dims dims_, padded_dims_, strides_, inner_blocks_, inner_dims_;
    data_type data_type_ = data_type::undef;
    format_kind format_kind_ = format_kind::undef;
  };

  memory() = default;
  memory(const desc& md, const engine& aengine);                // allocates its memory
  memory(const desc& md, const engine& aengine, void* handle);  // the caller's memory, DNNL_MEMORY_ALLOCATE or DNNL_MEMORY_NONE
  desc get_desc() const;
  engine get_engine() const;
  void* get_data_handle() const;
  void set_data_handle(void* handle) const;
  template <typename T = void>
  T* map_data() const {
    return static_cast<T*>(get_data_handle());
  }
  void unmap_data(void*) const {}
  explicit operator bool() const { return object_ != nullptr; }

  const detail::memory_object& object() const;  // throws when empty

 private:
  std::shared_ptr<detail::memory_object> object_;
};

struct DNNL_API primitive_attr {
  // `mask` 0: one scale for the tensor of argument `arg`, which is passed at execution as DNNL_ARG_ATTR_SCALES | arg.
  void set_scales_mask(int arg, int mask);
  void set_scratchpad_mode(scratchpad_mode mode) { scratchpad_mode_ = mode; }
  scratchpad_mode get_scratchpad_mode() const { return scratchpad_mode_; }
  const std::unordered_map<int, int>& scales_masks() const { return scales_masks_; }

 private:
  std::unordered_map<int, int> scales_masks_;
  scratchpad_mode scratchpad_mode_ = scratchpad_mode::library;
};

struct DNNL_API primitive_desc_base {
  primitive_desc_base() = default;
  engine get_engine() const;
  const char* impl_info_str() const;
  memory::desc src_desc() const;
  memory::desc dst_desc() const;
  memory::desc diff_src_desc() const;
  memory::desc diff_dst_desc() const;
  memory::desc weights_desc() const;       // scale and shift
  memory::desc diff_weights_desc() const;  // their gradients
  memory::desc workspace_desc() const { return {}; }
  memory::desc scratchpad_desc() const;
  memory::desc mean_desc() const;
  memory::desc variance_desc() const;
  primitive_attr get_primitive_attr() const;
  dnnl::prop_kind get_prop_kind() const;
  float get_epsilon() const;
  normalization_flags get_flags() const;
  explicit operator bool() const { return object_ != nullptr; }

  const std::shared_ptr<const detail::layer_norm_object>& object() const;  // throws when empty

 protected:
  std::shared_ptr<const detail::layer_norm_object> object_;
};

struct primitive_desc : public primitive_desc_base {};

struct DNNL_API primitive {
  enum class kind { undef = 0, layer_normalization = 1 };

  primitive() = default;
  primitive(const primitive_desc_base& pd) : object_(pd.object()) {}
  // Arguments by their index. Throws for missing and mismatching memory; surplus memory is ignored.
  void execute(const stream& astream, const std::unordered_map<int, memory>& args) const;
  kind get_kind() const { return kind::layer_normalization; }
  explicit operator bool() const { return object_ != nullptr; }

 private:
  std::shared_ptr<const detail::layer_norm_object> object_;
};

struct DNNL_API layer_normalization_forward : public primitive {
  struct DNNL_API primitive_desc : public dnnl::primitive_desc {
    primitive_desc() = default;
    // `stat_desc` describes mean and variance; without it they follow the layout of src. With `allow_empty` a failure leaves
    // the object empty.
    primitive_desc(const engine& aengine, prop_kind aprop_kind, const memory::desc& src_desc, const memory::desc& dst_desc,
                   const memory::desc& stat_desc, float epsilon, normalization_flags flags, const primitive_attr& attr = {},
                   bool allow_empty = false);
    primitive_desc(const engine& aengine, prop_kind aprop_kind, const memory::desc& src_desc, const memory::desc& dst_desc,
                   float epsilon, normalization_flags flags, const primitive_attr& attr = {}, bool allow_empty = false);
  };

  layer_normalization_forward() = default;
  layer_normalization_forward(const primitive_desc& pd) : primitive(pd) {}
};

struct DNNL_API layer_normalization_backward : public primitive {
  struct DNNL_API primitive_desc : public dnnl::primitive_desc {
    primitive_desc() = default;
    primitive_desc(const engine& aengine, prop_kind aprop_kind, const memory::desc& diff_src_desc,
                   const memory::desc& diff_dst_desc, const memory::desc& src_desc, const memory::desc& stat_desc,
                   float epsilon, normalization_flags flags, const layer_normalization_forward::primitive_desc& hint_fwd_pd,
                   const primitive_attr& attr = {}, bool allow_empty = false);
    primitive_desc(const engine& aengine, prop_kind aprop_kind, const memory::desc& diff_src_desc,
                   const memory::desc& diff_dst_desc, const memory::desc& src_desc, float epsilon, normalization_flags flags,
                   const layer_normalization_forward::primitive_desc& hint_fwd_pd, const primitive_attr& attr = {},
                   bool allow_empty = false);
  };

  layer_normalization_backward() = default;
  layer_normalization_backward(const primitive_desc& pd) : primitive(pd) {}
};

}  // namespace dnnl

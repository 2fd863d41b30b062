// The calls of statuses.cpp, by object.

void logical_tensors() {
  Tensor tensor{};
  const dnnl_dims_t dims = {2, 3, 4}, strides = {12, 4, 1};
  const auto strided = dnnl_graph_layout_type_strided;
  const auto any = dnnl_graph_layout_type_any;
  const auto undef = dnnl_graph_tensor_property_undef;
  status_line("tensor init null", [&] { return dnnl_graph_logical_tensor_init(nullptr, 0, dnnl_f32, 1, strided, undef); });
  for (const int ndims : {-2, -1, 0, 1, 12, 13}) {
    line("tensor init ndims " + std::to_string(ndims), [&] {
      const Text text = told(dnnl_graph_logical_tensor_init(&tensor, 7, dnnl_f32, ndims, strided, undef));
      return text + " " + told(tensor);
    });
  }
  line("tensor init type 99", [&] {
    return told(dnnl_graph_logical_tensor_init(&tensor, 7, number_as<dnnl_data_type_t>(99), 1, strided, undef), tensor);
  });
  line("tensor init layout 9", [&] {
    return told(dnnl_graph_logical_tensor_init(&tensor, 7, dnnl_f32, 1, number_as<dnnl_graph_layout_type_t>(9), undef), tensor);
  });
  status_line("tensor with dims null",
              [&] { return dnnl_graph_logical_tensor_init_with_dims(nullptr, 0, dnnl_f32, 3, dims, strided, undef); });
  status_line("tensor with null dims",
              [&] { return dnnl_graph_logical_tensor_init_with_dims(&tensor, 0, dnnl_f32, 3, nullptr, strided, undef); });
  status_line("tensor with dims ndims -1",
              [&] { return dnnl_graph_logical_tensor_init_with_dims(&tensor, 0, dnnl_f32, -1, dims, strided, undef); });
  line("tensor with dims ndims 0",
       [&] { return told(dnnl_graph_logical_tensor_init_with_dims(&tensor, 0, dnnl_f32, 0, dims, strided, undef), tensor); });
  for (const std::vector<int64_t>& shape :
       std::vector<std::vector<int64_t>>{{2, 3, 4}, {2, 0, 4}, {2, -1, 4}, {DNNL_GRAPH_UNKNOWN_DIM, 3}, {1}, {0}}) {
    Text name = "tensor with dims";
    for (const int64_t dim : shape) name += " " + std::to_string(dim);
    for (const auto layout : {strided, any, dnnl_graph_layout_type_undef, dnnl_graph_layout_type_opaque}) {
      line(name + " layout " + std::to_string(layout), [&] {
        return told(dnnl_graph_logical_tensor_init_with_dims(&tensor, 3, dnnl_s8, static_cast<int>(shape.size()), shape.data(),
                                                             layout, dnnl_graph_tensor_property_constant),
                    tensor);
      });
    }
  }
  line("tensor with strides", [&] {
    return told(dnnl_graph_logical_tensor_init_with_strides(&tensor, 3, dnnl_f32, 3, dims, strides, undef), tensor);
  });
  status_line("tensor with null strides",
              [&] { return dnnl_graph_logical_tensor_init_with_strides(&tensor, 3, dnnl_f32, 3, dims, nullptr, undef); });
  status_line("tensor with strides ndims -1",
              [&] { return dnnl_graph_logical_tensor_init_with_strides(&tensor, 3, dnnl_f32, -1, dims, strides, undef); });

  size_t size = 77;
  status_line("size null tensor", [&] { return dnnl_graph_logical_tensor_get_mem_size(nullptr, &size); });
  Tensor dense = tensor_of(1, {2, 3, 4});
  status_line("size null size", [&] { return dnnl_graph_logical_tensor_get_mem_size(&dense, nullptr); });
  const auto size_line = [&](const Text& name, const Tensor& of) {
    line("size " + name, [&] {
      const Text text = told(dnnl_graph_logical_tensor_get_mem_size(&of, &size));
      return text + " " + (size == SIZE_MAX ? "-1" : std::to_string(size));
    });
  };
  size_line("dense", dense);
  size_line("scalar", tensor_of(1, {}));
  size_line("empty", tensor_of(1, {2, 0, 3}));
  size_line("any", tensor_of(1, {2, 3}, dnnl_f32, any));
  size_line("undef layout", tensor_of(1, {2, 3}, dnnl_f32, dnnl_graph_layout_type_undef));
  for (const dnnl_data_type_t type : {dnnl_f16, dnnl_bf16, dnnl_s32, dnnl_s8, dnnl_u8, dnnl_boolean})
    size_line("type " + std::to_string(type), tensor_of(1, {3, 5}, type));
  Tensor gaps = dense;
  gaps.layout.strides[0] = 100;
  size_line("gaps", gaps);
  gaps.dims[0] = 1;
  size_line("gaps around one", gaps);
  gaps.layout.strides[1] = 0;
  size_line("broadcast", gaps);
  Tensor overlapping = tensor_of(1, {3, 4});
  overlapping.layout.strides[0] = 2;
  size_line("overlapping", overlapping);
  Tensor far = dense;
  far.layout.strides[0] = int64_t{1} << 62;
  size_line("beyond counting", far);

  uint8_t equal = 9;
  Tensor other = dense;
  const auto equal_line = [&](const Text& name, const Tensor* left, const Tensor* right) {
    line("equal " + name, [&, left, right] {
      const Text text = told(dnnl_graph_logical_tensor_is_equal(left, right, &equal));
      return text + " " + std::to_string(equal);
    });
  };
  equal_line("null left", nullptr, &dense);
  equal_line("null right", &dense, nullptr);
  status_line("equal null result", [&] { return dnnl_graph_logical_tensor_is_equal(&dense, &other, nullptr); });
  equal_line("same", &dense, &other);
  const auto changed = [&](const Text& name, const std::function<void(Tensor&)>& change) {
    other = dense;
    change(other);
    equal_line(name, &dense, &other);
  };
  changed("id", [](Tensor& t) { t.id = 2; });
  changed("type", [](Tensor& t) { t.data_type = dnnl_s8; });
  changed("dim", [](Tensor& t) { t.dims[1] = 9; });
  changed("dim behind", [](Tensor& t) { t.dims[5] = 9; });
  changed("stride", [](Tensor& t) { t.layout.strides[1] = 9; });
  changed("layout", [](Tensor& t) { t.layout_type = dnnl_graph_layout_type_any; });
  changed("property", [](Tensor& t) { t.property = dnnl_graph_tensor_property_constant; });
  changed("ndims", [](Tensor& t) { t.ndims = 2; });
}

void ops() {
  dnnl_graph_op_t op = nullptr;
  status_line("op create null", [&] { return dnnl_graph_op_create(nullptr, 1, dnnl_graph_op_relu, "relu"); });
  status_line("op create", [&] { return dnnl_graph_op_create(&op, 1, dnnl_graph_op_relu, "relu"); });
  status_line("op create no name", [&] { return dnnl_graph_op_create(&op, 1, dnnl_graph_op_relu, nullptr); });
  for (const int kind : {-1, 82, 500, 513, 100000})
    status_line("op create kind " + std::to_string(kind),
                [&] { return dnnl_graph_op_create(&op, 1, static_cast<dnnl_graph_op_kind_t>(kind), "odd"); });
  status_line("op destroy null", [] { return dnnl_graph_op_destroy(nullptr); });
  const Tensor tensor = tensor_of(1, {2, 3});
  const Op made = relu(5, 1, 2);
  status_line("op add_input null op", [&] { return dnnl_graph_op_add_input(nullptr, &tensor); });
  status_line("op add_input null tensor", [&] { return dnnl_graph_op_add_input(made.handle, nullptr); });
  status_line("op add_output null op", [&] { return dnnl_graph_op_add_output(nullptr, &tensor); });
  status_line("op add_output null tensor", [&] { return dnnl_graph_op_add_output(made.handle, nullptr); });
  size_t id = 0;
  dnnl_graph_op_kind_t kind = dnnl_graph_op_add;
  line("op id", [&] { return told(dnnl_graph_op_get_id(made.handle, &id), id); });
  line("op kind", [&] { return told(dnnl_graph_op_get_kind(made.handle, &kind), kind); });
  status_line("op id null op", [&] { return dnnl_graph_op_get_id(nullptr, &id); });
  status_line("op id null id", [&] { return dnnl_graph_op_get_id(made.handle, nullptr); });
  status_line("op kind null op", [&] { return dnnl_graph_op_get_kind(nullptr, &kind); });
  status_line("op kind null kind", [&] { return dnnl_graph_op_get_kind(made.handle, nullptr); });

  const float f = 1;
  const int64_t s = 1;
  const uint8_t b = 1;
  const auto attribute = [](int number) { return static_cast<dnnl_graph_op_attr_t>(number); };
  status_line("attr f32 null op", [&] { return dnnl_graph_op_set_attr_f32(nullptr, dnnl_graph_op_attr_epsilon, &f, 1); });
  status_line("attr f32 null value",
              [&] { return dnnl_graph_op_set_attr_f32(made.handle, dnnl_graph_op_attr_epsilon, nullptr, 1); });
  status_line("attr f32 null list",
              [&] { return dnnl_graph_op_set_attr_f32(made.handle, dnnl_graph_op_attr_scales, nullptr, 0); });
  status_line("attr s64 null op", [&] { return dnnl_graph_op_set_attr_s64(nullptr, dnnl_graph_op_attr_axis, &s, 1); });
  status_line("attr s64 null value",
              [&] { return dnnl_graph_op_set_attr_s64(made.handle, dnnl_graph_op_attr_axis, nullptr, 1); });
  status_line("attr s64 null list",
              [&] { return dnnl_graph_op_set_attr_s64(made.handle, dnnl_graph_op_attr_axes, nullptr, 0); });
  status_line("attr bool null op", [&] { return dnnl_graph_op_set_attr_bool(nullptr, dnnl_graph_op_attr_keep_dims, &b, 1); });
  status_line("attr bool null value",
              [&] { return dnnl_graph_op_set_attr_bool(made.handle, dnnl_graph_op_attr_keep_dims, nullptr, 1); });
  status_line("attr str null op", [&] { return dnnl_graph_op_set_attr_str(nullptr, dnnl_graph_op_attr_qtype, "x", 1); });
  status_line("attr str null value",
              [&] { return dnnl_graph_op_set_attr_str(made.handle, dnnl_graph_op_attr_qtype, nullptr, 1); });
  for (const int number : {0, 1, 2, 7, 32, 48, 64, 96, 128, 255, 560, 99999, -1}) {
    const Text name = std::to_string(number);
    status_line("attr f32 " + name, [&] { return dnnl_graph_op_set_attr_f32(made.handle, attribute(number), &f, 1); });
    status_line("attr f32 " + name + " length 0",
                [&] { return dnnl_graph_op_set_attr_f32(made.handle, attribute(number), &f, 0); });
    status_line("attr s64 " + name, [&] { return dnnl_graph_op_set_attr_s64(made.handle, attribute(number), &s, 1); });
    status_line("attr bool " + name, [&] { return dnnl_graph_op_set_attr_bool(made.handle, attribute(number), &b, 1); });
    status_line("attr bool " + name + " length 0",
                [&] { return dnnl_graph_op_set_attr_bool(made.handle, attribute(number), &b, 0); });
    status_line("attr str " + name, [&] { return dnnl_graph_op_set_attr_str(made.handle, attribute(number), "x", 1); });
  }
}

// What dnnl_graph_add_op says to an op by itself.
void checks_of_ops() {
  const Tensor a = tensor_of(1, {2, 8}), b = tensor_of(2, {2, 8}), c = tensor_of(3, {2, 8}), row = tensor_of(4, {8}),
               d = tensor_of(5, {8});
  const Tensor whole = tensor_of(6, {2, 8}, dnnl_s32), bytes = tensor_of(7, {2, 8}, dnnl_s8);
  const auto add_line = [](const Text& name, const std::function<Op()>& make) {
    status_line("add_op " + name, [&] { return add_status(make()); });
  };
  status_line("add_op null graph", [&] { return dnnl_graph_add_op(nullptr, relu(1, 1, 2).handle); });
  status_line("add_op null op", [&] { return dnnl_graph_add_op(new_graph(), nullptr); });
  add_line("relu", [&] { return relu(1, 1, 2); });
  add_line("no input", [&] { return Op(1, dnnl_graph_op_relu, {}, {b}); });
  add_line("two inputs", [&] { return Op(1, dnnl_graph_op_relu, {a, b}, {c}); });
  add_line("no output", [&] { return Op(1, dnnl_graph_op_relu, {a}, {}); });
  add_line("two outputs", [&] { return Op(1, dnnl_graph_op_relu, {a}, {b, c}); });
  add_line("type s32", [&] { return Op(1, dnnl_graph_op_relu, {whole}, {b}); });
  add_line("types that differ", [&] { return Op(1, dnnl_graph_op_relu, {a}, {tensor_of(2, {2, 8}, dnnl_bf16)}); });
  add_line("type undef", [&] { return Op(1, dnnl_graph_op_relu, {tensor_of(1, {2, 8}, dnnl_data_type_undef)}, {b}); });
  add_line("shapes that differ", [&] { return Op(1, dnnl_graph_op_relu, {a}, {tensor_of(2, {2, 9})}); });
  add_line("ranks that differ", [&] { return Op(1, dnnl_graph_op_relu, {a}, {tensor_of(2, {2, 8, 1})}); });
  add_line("rank 0 out", [&] { return Op(1, dnnl_graph_op_relu, {a}, {tensor_of(2, {})}); });
  add_line("foreign attribute", [&] { return relu(1, 1, 2).s64(dnnl_graph_op_attr_axis, {1}); });
  add_line("foreign attribute of a string", [&] { return relu(1, 1, 2).str(dnnl_graph_op_attr_qtype, "what"); });
  add_line("opaque input",
           [&] { return Op(1, dnnl_graph_op_relu, {tensor_of(1, {2, 8}, dnnl_f32, dnnl_graph_layout_type_opaque)}, {b}); });
  add_line("negative dim", [&] { return Op(1, dnnl_graph_op_relu, {tensor_of(1, {2, -8})}, {unknown(2)}); });
  add_line("input is output", [&] { return Op(1, dnnl_graph_op_relu, {a}, {a}); });
  add_line("wildcard", [&] { return Op(1, dnnl_graph_op_wildcard, {a, b}, {c}); });
  add_line("wildcard of nothing", [&] { return Op(1, dnnl_graph_op_wildcard, {}, {}); });
  add_line("end", [&] { return Op(1, dnnl_graph_op_end, {a}, {}); });
  add_line("end of two", [&] { return Op(1, dnnl_graph_op_end, {a, b}, {}); });
  add_line("end with output", [&] { return Op(1, dnnl_graph_op_end, {a}, {b}); });
  for (const float epsilon : {1e-5f, 0.0f, -1.0f, 1.0f / 0.0f}) {
    const Text name = std::to_string(epsilon);
    add_line("layer norm epsilon " + name, [&] {
      return Op(1, dnnl_graph_op_layer_norm, {a, row, d}, {b})
          .f32(dnnl_graph_op_attr_epsilon, {epsilon})
          .boolean(dnnl_graph_op_attr_keep_stats, false);
    });
    add_line("batch norm epsilon " + name, [&] {
      const Tensor x = tensor_of(1, {1, 2, 2, 8});
      return Op(1, dnnl_graph_op_batch_norm_inference, {x, row, d, tensor_of(8, {8}), tensor_of(9, {8})},
                {tensor_of(2, {1, 2, 2, 8})})
          .f32(dnnl_graph_op_attr_epsilon, {epsilon}, 0);
    });
  }
  add_line("batch norm without epsilon", [&] {
    const Tensor x = tensor_of(1, {1, 2, 2, 8});
    return Op(1, dnnl_graph_op_batch_norm_inference, {x, row, d, tensor_of(8, {8}), tensor_of(9, {8})},
              {tensor_of(2, {1, 2, 2, 8})});
  });
  add_line("layer norm keeps statistics and has none", [&] { return Op(1, dnnl_graph_op_layer_norm, {a, row, d}, {b}); });
  add_line("layer norm without gamma",
           [&] { return Op(1, dnnl_graph_op_layer_norm, {a}, {b}).boolean(dnnl_graph_op_attr_keep_stats, false); });
  add_line("layer norm without affine", [&] {
    return Op(1, dnnl_graph_op_layer_norm, {a}, {b})
        .boolean(dnnl_graph_op_attr_keep_stats, false)
        .boolean(dnnl_graph_op_attr_use_affine, false);
  });
  add_line("layer norm with needless gamma", [&] {
    return Op(1, dnnl_graph_op_layer_norm, {a, row, d}, {b})
        .boolean(dnnl_graph_op_attr_keep_stats, false)
        .boolean(dnnl_graph_op_attr_use_affine, false);
  });
  for (const int64_t axis : {-1, 1, 2, 9, -9})
    add_line("layer norm axis " + std::to_string(axis), [&] {
      return Op(1, dnnl_graph_op_layer_norm, {a, row, d}, {b})
          .boolean(dnnl_graph_op_attr_keep_stats, false)
          .s64(dnnl_graph_op_attr_begin_norm_axis, {axis});
    });
  add_line("layer norm gamma of another length", [&] {
    return Op(1, dnnl_graph_op_layer_norm, {a, tensor_of(4, {9}), d}, {b}).boolean(dnnl_graph_op_attr_keep_stats, false);
  });
  add_line("layer norm s8",
           [&] { return Op(1, dnnl_graph_op_layer_norm, {bytes, row, d}, {b}).boolean(dnnl_graph_op_attr_keep_stats, false); });
  for (const int64_t axis : {0, 1, 5, -3})
    add_line("softmax axis " + std::to_string(axis),
             [&] { return Op(1, dnnl_graph_op_softmax, {a}, {b}).s64(dnnl_graph_op_attr_axis, {axis}); });
  add_line("elu without alpha", [&] { return Op(1, dnnl_graph_op_elu, {a}, {b}); });
  add_line("elu", [&] { return Op(1, dnnl_graph_op_elu, {a}, {b}).f32(dnnl_graph_op_attr_alpha, {1}); });
  add_line("elu negative alpha", [&] { return Op(1, dnnl_graph_op_elu, {a}, {b}).f32(dnnl_graph_op_attr_alpha, {-1}); });
  add_line("elu alpha as a whole number",
           [&] { return Op(1, dnnl_graph_op_elu, {a}, {b}).s64(dnnl_graph_op_attr_alpha, {1}); });
  add_line("clamp min above max", [&] {
    return Op(1, dnnl_graph_op_clamp, {a}, {b}).f32(dnnl_graph_op_attr_min, {2}).f32(dnnl_graph_op_attr_max, {1});
  });
  add_line("clamp without max", [&] { return Op(1, dnnl_graph_op_clamp, {a}, {b}).f32(dnnl_graph_op_attr_min, {2}); });
  add_line("add", [&] { return Op(1, dnnl_graph_op_add, {a, b}, {c}); });
  add_line("add row", [&] { return Op(1, dnnl_graph_op_add, {a, row}, {c}); });
  add_line("add without broadcast",
           [&] { return Op(1, dnnl_graph_op_add, {a, row}, {c}).str(dnnl_graph_op_attr_auto_broadcast, "none"); });
  add_line("add broadcast what",
           [&] { return Op(1, dnnl_graph_op_add, {a, b}, {c}).str(dnnl_graph_op_attr_auto_broadcast, "what"); });
  add_line("add shapes", [&] { return Op(1, dnnl_graph_op_add, {a, tensor_of(2, {2, 7})}, {c}); });
  add_line("add s32", [&] { return Op(1, dnnl_graph_op_add, {whole, b}, {c}); });
  add_line("matmul", [&] { return Op(1, dnnl_graph_op_matmul, {a, tensor_of(2, {8, 4})}, {tensor_of(3, {2, 4})}); });
  add_line("matmul shapes", [&] { return Op(1, dnnl_graph_op_matmul, {a, tensor_of(2, {7, 4})}, {tensor_of(3, {2, 4})}); });
  add_line("matmul s8",
           [&] { return Op(1, dnnl_graph_op_matmul, {bytes, tensor_of(2, {8, 4}, dnnl_s8)}, {tensor_of(3, {2, 4})}); });
  add_line("matmul bias",
           [&] { return Op(1, dnnl_graph_op_matmul, {a, tensor_of(2, {8, 4}), tensor_of(8, {4})}, {tensor_of(3, {2, 4})}); });
  add_line("matmul transpose as a number", [&] {
    return Op(1, dnnl_graph_op_matmul, {a, tensor_of(2, {8, 4})}, {tensor_of(3, {2, 4})})
        .s64(dnnl_graph_op_attr_transpose_a, {0});
  });
  const auto quantize = [&](const Tensor& to) { return Op(1, dnnl_graph_op_quantize, {a}, {to}); };
  add_line("quantize without scales", [&] { return quantize(bytes); });
  add_line("quantize", [&] { return quantize(bytes).f32(dnnl_graph_op_attr_scales, {0.5f}).s64(dnnl_graph_op_attr_zps, {0}); });
  add_line("quantize without zps", [&] { return quantize(bytes).f32(dnnl_graph_op_attr_scales, {0.5f}); });
  add_line("quantize no scales in the list",
           [&] { return quantize(bytes).f32(dnnl_graph_op_attr_scales, {0.5f}, 0).s64(dnnl_graph_op_attr_zps, {0}, 0); });
  add_line("quantize zero scale",
           [&] { return quantize(bytes).f32(dnnl_graph_op_attr_scales, {0}).s64(dnnl_graph_op_attr_zps, {0}); });
  add_line("quantize negative scale",
           [&] { return quantize(bytes).f32(dnnl_graph_op_attr_scales, {-1}).s64(dnnl_graph_op_attr_zps, {0}); });
  add_line("quantize two scales",
           [&] { return quantize(bytes).f32(dnnl_graph_op_attr_scales, {1, 2}, 2).s64(dnnl_graph_op_attr_zps, {0, 0}, 2); });
  add_line("quantize two scales one zp",
           [&] { return quantize(bytes).f32(dnnl_graph_op_attr_scales, {1, 2}, 2).s64(dnnl_graph_op_attr_zps, {0}); });
  add_line("quantize per channel", [&] {
    return quantize(bytes)
        .f32(dnnl_graph_op_attr_scales, {1, 2}, 2)
        .s64(dnnl_graph_op_attr_zps, {0, 0}, 2)
        .str(dnnl_graph_op_attr_qtype, "per_channel")
        .s64(dnnl_graph_op_attr_axis, {0});
  });
  add_line("quantize per channel of another length", [&] {
    return quantize(bytes)
        .f32(dnnl_graph_op_attr_scales, {1, 2, 3}, 3)
        .s64(dnnl_graph_op_attr_zps, {0, 0, 0}, 3)
        .str(dnnl_graph_op_attr_qtype, "per_channel")
        .s64(dnnl_graph_op_attr_axis, {0});
  });
  add_line("quantize per channel axis 7", [&] {
    return quantize(bytes)
        .f32(dnnl_graph_op_attr_scales, {1, 2}, 2)
        .s64(dnnl_graph_op_attr_zps, {0, 0}, 2)
        .str(dnnl_graph_op_attr_qtype, "per_channel")
        .s64(dnnl_graph_op_attr_axis, {7});
  });
  add_line("quantize qtype what", [&] {
    return quantize(bytes)
        .f32(dnnl_graph_op_attr_scales, {1})
        .s64(dnnl_graph_op_attr_zps, {0})
        .str(dnnl_graph_op_attr_qtype, "what");
  });
  add_line("quantize to f32", [&] { return quantize(b).f32(dnnl_graph_op_attr_scales, {1}).s64(dnnl_graph_op_attr_zps, {0}); });
  add_line("quantize zp out of range",
           [&] { return quantize(bytes).f32(dnnl_graph_op_attr_scales, {1}).s64(dnnl_graph_op_attr_zps, {1000}); });
  const Tensor image = tensor_of(1, {1, 3, 8, 8}), filter = tensor_of(2, {4, 3, 3, 3}), out = tensor_of(3, {1, 4, 6, 6});
  const auto convolution = [&](const Tensor& to, int64_t groups) {
    return Op(1, dnnl_graph_op_convolution, {image, filter}, {to})
        .s64(dnnl_graph_op_attr_strides, {1, 1}, 2)
        .s64(dnnl_graph_op_attr_pads_begin, {0, 0}, 2)
        .s64(dnnl_graph_op_attr_pads_end, {0, 0}, 2)
        .s64(dnnl_graph_op_attr_dilations, {1, 1}, 2)
        .s64(dnnl_graph_op_attr_groups, {groups}, 0)
        .str(dnnl_graph_op_attr_data_format, "NCX", 1)
        .str(dnnl_graph_op_attr_weights_format, "OIX", 1);
  };
  add_line("convolution", [&] { return convolution(out, 1); });
  add_line("convolution to rank 0", [&] { return convolution(tensor_of(3, {}), 1); });
  add_line("convolution to another shape", [&] { return convolution(tensor_of(3, {1, 4, 5, 5}), 1); });
  add_line("convolution groups 2", [&] { return convolution(out, 2); });
  add_line("convolution without attributes", [&] { return Op(1, dnnl_graph_op_convolution, {image, filter}, {out}); });
  add_line("convolution one stride", [&] { return convolution(out, 1).s64(dnnl_graph_op_attr_strides, {1}, 1); });
  add_line("convolution format", [&] { return convolution(out, 1).str(dnnl_graph_op_attr_data_format, "NCW"); });
  add_line("convolution auto_pad lower case",
           [&] { return convolution(out, 1).str(dnnl_graph_op_attr_auto_pad, "same_upper"); });
  add_line("convolution auto_pad", [&] { return convolution(out, 1).str(dnnl_graph_op_attr_auto_pad, "VALID"); });
  add_line("reduce without axes", [&] { return Op(1, dnnl_graph_op_reduce_sum, {a}, {d}); });
  add_line("reduce axes", [&] { return Op(1, dnnl_graph_op_reduce_sum, {a}, {d}).s64(dnnl_graph_op_attr_axes, {0}); });
  add_line("reduce axes twice",
           [&] { return Op(1, dnnl_graph_op_reduce_sum, {a}, {d}).s64(dnnl_graph_op_attr_axes, {0, 0}, 2); });
  add_line("reduce axis 9", [&] { return Op(1, dnnl_graph_op_reduce_sum, {a}, {d}).s64(dnnl_graph_op_attr_axes, {9}); });
  add_line("reduce axes as a tensor", [&] { return Op(1, dnnl_graph_op_reduce_sum, {a, tensor_of(9, {1}, dnnl_s32)}, {d}); });
  add_line("reshape", [&] {
    return Op(1, dnnl_graph_op_static_reshape, {a}, {tensor_of(2, {16})})
        .s64(dnnl_graph_op_attr_shape, {16})
        .boolean(dnnl_graph_op_attr_special_zero, false);
  });
  add_line("reshape to another size", [&] {
    return Op(1, dnnl_graph_op_static_reshape, {a}, {tensor_of(2, {17})})
        .s64(dnnl_graph_op_attr_shape, {17})
        .boolean(dnnl_graph_op_attr_special_zero, false);
  });
  add_line("reshape without shape", [&] { return Op(1, dnnl_graph_op_static_reshape, {a}, {tensor_of(2, {16})}); });
  add_line("transpose", [&] {
    return Op(1, dnnl_graph_op_static_transpose, {a}, {tensor_of(2, {8, 2})}).s64(dnnl_graph_op_attr_order, {1, 0}, 2);
  });
  add_line("transpose short order", [&] {
    return Op(1, dnnl_graph_op_static_transpose, {a}, {tensor_of(2, {8, 2})}).s64(dnnl_graph_op_attr_order, {1});
  });
  add_line("transpose order twice", [&] {
    return Op(1, dnnl_graph_op_static_transpose, {a}, {tensor_of(2, {8, 2})}).s64(dnnl_graph_op_attr_order, {1, 1}, 2);
  });
  add_line("concat of one", [&] { return Op(1, dnnl_graph_op_concat, {a}, {b}).s64(dnnl_graph_op_attr_axis, {0}); });
  add_line("concat",
           [&] { return Op(1, dnnl_graph_op_concat, {a, b}, {tensor_of(3, {4, 8})}).s64(dnnl_graph_op_attr_axis, {0}); });
  add_line("concat without axis", [&] { return Op(1, dnnl_graph_op_concat, {a, b}, {tensor_of(3, {4, 8})}); });
  add_line("concat shapes", [&] {
    return Op(1, dnnl_graph_op_concat, {a, tensor_of(2, {3, 9})}, {tensor_of(3, {4, 8})}).s64(dnnl_graph_op_attr_axis, {0});
  });
  add_line("typecast", [&] { return Op(1, dnnl_graph_op_type_cast, {a}, {tensor_of(2, {2, 8}, dnnl_bf16)}); });
  add_line("typecast to itself", [&] { return Op(1, dnnl_graph_op_type_cast, {a}, {b}); });
  add_line("typecast to s8", [&] { return Op(1, dnnl_graph_op_type_cast, {a}, {bytes}); });
  add_line("max pool without kernel", [&] { return Op(1, dnnl_graph_op_max_pool, {image}, {out}); });
  add_line("select", [&] { return Op(1, dnnl_graph_op_select, {tensor_of(8, {2, 8}, dnnl_boolean), a, b}, {c}); });
  add_line("select on f32", [&] { return Op(1, dnnl_graph_op_select, {a, b, c}, {tensor_of(9, {2, 8})}); });
  add_line("layer norm backward", [&] {
    return Op(1, dnnl_graph_op_layer_norm_backward, {a, b, tensor_of(8, {2}), tensor_of(9, {2}), row, d},
              {c, tensor_of(10, {8}), tensor_of(11, {8})});
  });
  add_line("layer norm backward without gamma",
           [&] { return Op(1, dnnl_graph_op_layer_norm_backward, {a, b, tensor_of(8, {2}), tensor_of(9, {2})}, {c}); });
  add_line("layer norm backward of two inputs", [&] { return Op(1, dnnl_graph_op_layer_norm_backward, {a, b}, {c}); });
}

void graphs() {
  dnnl_graph_graph_t graph = nullptr;
  status_line("graph create null", [] { return dnnl_graph_graph_create(nullptr, dnnl_cpu); });
  for (const int kind : {0, 1, 2, 9}) {
    status_line("graph create kind " + std::to_string(kind),
                [&] { return dnnl_graph_graph_create(&graph, static_cast<dnnl_engine_kind_t>(kind)); });
    line("partitions of kind " + std::to_string(kind), [&] {
      dnnl_graph_graph_t of_kind = nullptr;
      dnnl_graph_graph_create(&of_kind, static_cast<dnnl_engine_kind_t>(kind));
      if (of_kind == nullptr) return Text("no graph");
      const Text added = told(dnnl_graph_add_op(of_kind, relu(1, 1, 2).handle));
      return added + ", " + told_partitions(of_kind, dnnl_graph_partition_policy_fusion);
    });
  }
  status_line("graph create fpmath null",
              [] { return dnnl_graph_graph_create_with_fpmath_mode(nullptr, dnnl_cpu, dnnl_fpmath_mode_bf16); });
  for (const int mode : {0, 1, 2, 3, 9})
    status_line("graph create fpmath " + std::to_string(mode), [&] {
      return dnnl_graph_graph_create_with_fpmath_mode(&graph, dnnl_cpu, static_cast<dnnl_fpmath_mode_t>(mode));
    });
  status_line("graph destroy null", [] { return dnnl_graph_graph_destroy(nullptr); });
  uint8_t finalized = 9;
  graph = new_graph();
  status_line("is_finalized null graph", [&] { return dnnl_graph_graph_is_finalized(nullptr, &finalized); });
  status_line("is_finalized null result", [&] { return dnnl_graph_graph_is_finalized(graph, nullptr); });
  line("is_finalized before", [&] { return told(dnnl_graph_graph_is_finalized(graph, &finalized), finalized); });
  status_line("finalize null", [] { return dnnl_graph_graph_finalize(nullptr); });
  status_line("finalize empty", [&] { return dnnl_graph_graph_finalize(graph); });
  status_line("finalize twice", [&] {
    dnnl_graph_graph_finalize(graph);
    return dnnl_graph_graph_finalize(graph);
  });
  line("is_finalized after", [&] {
    dnnl_graph_graph_finalize(graph);
    return told(dnnl_graph_graph_is_finalized(graph, &finalized), finalized);
  });
  status_line("add to finalized", [&] {
    dnnl_graph_graph_finalize(graph);
    return dnnl_graph_add_op(graph, relu(1, 1, 2).handle);
  });
  status_line("filter null", [] { return dnnl_graph_graph_filter(nullptr, dnnl_graph_partition_policy_fusion); });
  status_line("filter before finalize", [&] { return dnnl_graph_graph_filter(graph, dnnl_graph_partition_policy_fusion); });
  status_line("filter empty", [&] {
    dnnl_graph_graph_finalize(graph);
    return dnnl_graph_graph_filter(graph, dnnl_graph_partition_policy_fusion);
  });
  for (const int policy : {0, 3, 99})
    line("filter policy " + std::to_string(policy),
         [&] { return told_partitions({relu(1, 1, 2)}, static_cast<dnnl_graph_partition_policy_t>(policy)); });
  size_t num = 99;
  status_line("partition_num null graph", [&] { return dnnl_graph_graph_get_partition_num(nullptr, &num); });
  status_line("partition_num null num", [&] { return dnnl_graph_graph_get_partition_num(graph, nullptr); });
  line("partition_num before filter", [&] { return told(dnnl_graph_graph_get_partition_num(graph, &num), num); });
  dnnl_graph_partition_t partition[4] = {};
  status_line("get_partitions null graph", [&] { return dnnl_graph_graph_get_partitions(nullptr, 1, partition); });
  status_line("get_partitions null list", [&] { return dnnl_graph_graph_get_partitions(graph, 1, nullptr); });
  status_line("get_partitions num 0", [&] { return dnnl_graph_graph_get_partitions(graph, 0, partition); });
  status_line("get_partitions before filter", [&] { return dnnl_graph_graph_get_partitions(graph, 1, partition); });

  line("two ops of one id", [] { return told_partitions({relu(1, 1, 2), relu(1, 2, 3)}); });
  line("the same op twice", [] {
    const Op op = relu(1, 1, 2);
    return told_partitions({op, op});
  });
  line("two producers", [] { return told_partitions({relu(1, 1, 2), relu(2, 3, 2)}); });
  line("cycle", [] { return told_partitions({relu(1, 1, 2), relu(2, 2, 1)}); });
  line("cycle of one", [] { return told_partitions({relu(1, 1, 1)}); });
  const Tensor known = tensor_of(1, {2, 8}), out = tensor_of(3, {2, 8});
  const auto twice = [&](const Text& name, const Tensor& other) {
    line("one id twice, " + name, [&] { return told_partitions({Op(1, dnnl_graph_op_add, {known, other}, {out})}); });
  };
  twice("equal", known);
  twice("layout undef", tensor_of(1, {2, 8}, dnnl_f32, dnnl_graph_layout_type_undef));
  twice("layout any", tensor_of(1, {2, 8}, dnnl_f32, dnnl_graph_layout_type_any));
  twice("constant", tensor_of(1, {2, 8}, dnnl_f32, dnnl_graph_layout_type_strided, dnnl_graph_tensor_property_constant));
  twice("rank unknown", unknown(1));
  twice("dims unknown", unknown(1, 2));
  twice("another shape", tensor_of(1, {1, 8}));
  line("one id twice across ops, layout any", [] {
    return told_partitions(
        {relu(1, 1, 2),
         Op(2, dnnl_graph_op_relu, {tensor_of(2, {2, 8}, dnnl_f32, dnnl_graph_layout_type_any)}, {tensor_of(3, {2, 8})})});
  });
  line("one id twice across ops, types", [] {
    return told_partitions(
        {relu(1, 1, 2), Op(2, dnnl_graph_op_relu, {tensor_of(2, {2, 8}, dnnl_bf16)}, {tensor_of(3, {2, 8}, dnnl_bf16)})});
  });
  line("shapes that contradict",
       [] { return told_partitions({Op(1, dnnl_graph_op_relu, {tensor_of(1, {2, 8})}, {tensor_of(2, {2, 9})})}); });
}

void partitions() {
  const Tensor a = tensor_of(1, {2, 8}), b = tensor_of(2, {2, 8}), c = tensor_of(3, {2, 8});
  line("relu", [] { return told_partitions({relu(1, 1, 2)}); });
  line("relu debug", [] { return told_partitions({relu(1, 1, 2)}, dnnl_graph_partition_policy_debug); });
  line("matmul and relu",
       [&] { return told_partitions({Op(7, dnnl_graph_op_matmul, {a, tensor_of(5, {8, 8})}, {b}), relu(3, 2, 3)}); });
  line("matmul and relu, added backwards",
       [&] { return told_partitions({relu(3, 2, 3), Op(7, dnnl_graph_op_matmul, {a, tensor_of(5, {8, 8})}, {b})}); });
  line("matmul and relu debug", [&] {
    return told_partitions({Op(7, dnnl_graph_op_matmul, {a, tensor_of(5, {8, 8})}, {b}), relu(3, 2, 3)},
                           dnnl_graph_partition_policy_debug);
  });
  line("relu and end", [&] { return told_partitions({relu(1, 1, 2), Op(2, dnnl_graph_op_end, {b}, {})}); });
  line("end alone", [&] { return told_partitions({Op(2, dnnl_graph_op_end, {b}, {})}); });
  line("wildcard alone", [&] { return told_partitions({Op(2, dnnl_graph_op_wildcard, {a}, {b})}); });
  line("wildcard and end",
       [&] { return told_partitions({Op(1, dnnl_graph_op_wildcard, {a}, {b}), Op(2, dnnl_graph_op_end, {b}, {})}); });
  line("relu, wildcard, relu",
       [&] { return told_partitions({relu(1, 1, 2), Op(2, dnnl_graph_op_wildcard, {b}, {c}), relu(3, 3, 4)}); });
  line("relu, end in the middle, relu",
       [&] { return told_partitions({relu(1, 1, 2), Op(2, dnnl_graph_op_end, {b}, {}), relu(3, 2, 4)}); });
  const Tensor image = tensor_of(1, {1, 3, 8, 8}), filter = tensor_of(5, {4, 3, 3, 3}),
               other_image = tensor_of(6, {1, 3, 8, 8});
  const Tensor x = tensor_of(2, {1, 4, 6, 6}), y = tensor_of(3, {1, 4, 6, 6}), z = tensor_of(4, {1, 4, 6, 6});
  const auto convolution = [](size_t id, const Tensor& from, const Tensor& by, const Tensor& to) {
    return Op(id, dnnl_graph_op_convolution, {from, by}, {to})
        .s64(dnnl_graph_op_attr_strides, {1, 1}, 2)
        .s64(dnnl_graph_op_attr_pads_begin, {0, 0}, 2)
        .s64(dnnl_graph_op_attr_pads_end, {0, 0}, 2)
        .s64(dnnl_graph_op_attr_dilations, {1, 1}, 2)
        .str(dnnl_graph_op_attr_data_format, "NCX")
        .str(dnnl_graph_op_attr_weights_format, "OIX");
  };
  line("two convolutions and their sum", [&] {
    return told_partitions(
        {convolution(1, image, filter, x), convolution(2, other_image, filter, y), Op(3, dnnl_graph_op_add, {x, y}, {z})});
  });
  line("convolution, bias and sum", [&] {
    return told_partitions(
        {convolution(1, image, filter, x),
         Op(2, dnnl_graph_op_bias_add, {x, tensor_of(7, {4})}, {y}).str(dnnl_graph_op_attr_data_format, "NCX"),
         Op(3, dnnl_graph_op_add, {y, tensor_of(8, {1, 4, 6, 6})}, {z})});
  });
  line("convolution and batch norm", [&] {
    const Tensor p = tensor_of(7, {4}), q = tensor_of(8, {4}), r = tensor_of(9, {4}), t = tensor_of(10, {4});
    return told_partitions({convolution(1, image, filter, x), Op(2, dnnl_graph_op_batch_norm_inference, {x, p, q, r, t}, {y})
                                                                  .f32(dnnl_graph_op_attr_epsilon, {0.001f})
                                                                  .str(dnnl_graph_op_attr_data_format, "NCX")});
  });
  line("relu, and added to what it read",
       [&] { return told_partitions({relu(0, 1, 2), Op(1, dnnl_graph_op_add, {a, b}, {c})}); });
  line("matmul, bias, gelu, sum", [&] {
    return told_partitions({Op(1, dnnl_graph_op_matmul, {a, tensor_of(5, {8, 8}), tensor_of(6, {8})}, {b}),
                            Op(2, dnnl_graph_op_gelu, {b}, {c}),
                            Op(3, dnnl_graph_op_add, {c, tensor_of(7, {2, 8})}, {tensor_of(4, {2, 8})})});
  });
  line("shapes unknown", [&] {
    return told_partitions({Op(1, dnnl_graph_op_matmul, {unknown(1), unknown(2)}, {unknown(3)}),
                            Op(2, dnnl_graph_op_relu, {unknown(3)}, {unknown(4)})});
  });
  line("ids of partitions differ", [&] {
    dnnl_graph_partition_t p = partition_of(relu(1, 1, 2)), q = partition_of(relu(1, 1, 2));
    size_t first = 0, second = 0;
    dnnl_graph_partition_get_id(p, &first);
    dnnl_graph_partition_get_id(q, &second);
    return Text(first != second ? "yes" : "no");
  });
  line("ids of the same partition", [&] {
    dnnl_graph_graph_t graph = new_graph();
    dnnl_graph_add_op(graph, relu(1, 1, 2).handle);
    dnnl_graph_graph_finalize(graph);
    dnnl_graph_graph_filter(graph, dnnl_graph_partition_policy_fusion);
    dnnl_graph_partition_t p = nullptr, q = nullptr;
    dnnl_graph_graph_get_partitions(graph, 1, &p);
    dnnl_graph_graph_get_partitions(graph, 1, &q);
    size_t first = 0, second = 0;
    dnnl_graph_partition_get_id(p, &first);
    dnnl_graph_partition_get_id(q, &second);
    return Text(first == second ? "equal" : "differ");
  });
  line("get_partitions of too few", [&] {
    dnnl_graph_graph_t graph = new_graph();
    dnnl_graph_add_op(graph, Op(2, dnnl_graph_op_wildcard, {a}, {b}).handle);
    dnnl_graph_add_op(graph, relu(1, 2, 3).handle);
    dnnl_graph_graph_finalize(graph);
    dnnl_graph_graph_filter(graph, dnnl_graph_partition_policy_fusion);
    std::array<dnnl_graph_partition_t, 4> list{};
    return told(dnnl_graph_graph_get_partitions(graph, 1, list.data()));
  });
  dnnl_graph_partition_t partition = partition_of(relu(1, 1, 2));
  size_t num = 0;
  std::array<size_t, 4> ids{};
  std::array<Tensor, 4> ports{};
  uint8_t supported = 9;
  dnnl_engine_kind_t kind = dnnl_any_engine;
  status_line("partition destroy null", [] { return dnnl_graph_partition_destroy(nullptr); });
  status_line("partition op_num null", [&] { return dnnl_graph_partition_get_op_num(nullptr, &num); });
  status_line("partition op_num null num", [&] { return dnnl_graph_partition_get_op_num(partition, nullptr); });
  status_line("partition ops null", [&] { return dnnl_graph_partition_get_ops(nullptr, 1, ids.data()); });
  status_line("partition ops null ids", [&] { return dnnl_graph_partition_get_ops(partition, 1, nullptr); });
  status_line("partition ops too many", [&] { return dnnl_graph_partition_get_ops(partition, 2, ids.data()); });
  status_line("partition ops too few", [&] { return dnnl_graph_partition_get_ops(partition, 0, ids.data()); });
  status_line("partition id null", [&] { return dnnl_graph_partition_get_id(nullptr, &num); });
  status_line("partition id null id", [&] { return dnnl_graph_partition_get_id(partition, nullptr); });
  status_line("partition inputs_num null", [&] { return dnnl_graph_partition_get_input_ports_num(nullptr, &num); });
  status_line("partition inputs_num null num", [&] { return dnnl_graph_partition_get_input_ports_num(partition, nullptr); });
  status_line("partition outputs_num null", [&] { return dnnl_graph_partition_get_output_ports_num(nullptr, &num); });
  status_line("partition outputs_num null num", [&] { return dnnl_graph_partition_get_output_ports_num(partition, nullptr); });
  status_line("partition inputs null", [&] { return dnnl_graph_partition_get_input_ports(nullptr, 1, ports.data()); });
  status_line("partition inputs null list", [&] { return dnnl_graph_partition_get_input_ports(partition, 1, nullptr); });
  status_line("partition inputs of another number",
              [&] { return dnnl_graph_partition_get_input_ports(partition, 3, ports.data()); });
  status_line("partition outputs null", [&] { return dnnl_graph_partition_get_output_ports(nullptr, 1, ports.data()); });
  status_line("partition outputs null list", [&] { return dnnl_graph_partition_get_output_ports(partition, 1, nullptr); });
  status_line("partition outputs of another number",
              [&] { return dnnl_graph_partition_get_output_ports(partition, 3, ports.data()); });
  status_line("partition supported null", [&] { return dnnl_graph_partition_is_supported(nullptr, &supported); });
  status_line("partition supported null result", [&] { return dnnl_graph_partition_is_supported(partition, nullptr); });
  status_line("partition kind null", [&] { return dnnl_graph_partition_get_engine_kind(nullptr, &kind); });
  status_line("partition kind null kind", [&] { return dnnl_graph_partition_get_engine_kind(partition, nullptr); });
  line("partition kind", [&] { return told(dnnl_graph_partition_get_engine_kind(partition, &kind), kind); });
  const auto port_line = [&](const Text& name, const Op& op) {
    line("ports " + name, [&] {
      dnnl_graph_partition_t of = partition_of(op);
      Tensor in{}, out{};
      size_t inputs = 0;
      dnnl_graph_partition_get_input_ports_num(of, &inputs);
      std::vector<Tensor> all(inputs);
      dnnl_graph_partition_get_input_ports(of, inputs, all.data());
      in = all.at(0);
      dnnl_graph_partition_get_output_ports(of, 1, &out);
      return told(in) + "; " + told(out);
    });
  };
  port_line("known", relu(1, 1, 2));
  port_line("out unknown", Op(1, dnnl_graph_op_relu, {a}, {unknown(2, 2)}));
  port_line("out rank unknown", Op(1, dnnl_graph_op_relu, {a}, {unknown(2)}));
  port_line("any", Op(1, dnnl_graph_op_relu, {tensor_of(1, {2, 8}, dnnl_f32, dnnl_graph_layout_type_any)},
                      {tensor_of(2, {2, 8}, dnnl_f32, dnnl_graph_layout_type_any)}));
  port_line("undef", Op(1, dnnl_graph_op_relu, {tensor_of(1, {2, 8}, dnnl_f32, dnnl_graph_layout_type_undef)},
                        {unknown(2, -1, dnnl_f32, dnnl_graph_layout_type_undef)}));

  dnnl_graph_partition_t created = nullptr;
  status_line("with op null", [&] { return dnnl_graph_partition_create_with_op(nullptr, relu(1, 1, 2).handle, dnnl_cpu); });
  status_line("with null op", [&] { return dnnl_graph_partition_create_with_op(&created, nullptr, dnnl_cpu); });
  const auto with_op = [&](const Text& name, const std::function<Op()>& make) {
    line("with op " + name, [&] {
      const dnnl_status_t status = dnnl_graph_partition_create_with_op(&created, make().handle, dnnl_cpu);
      if (status != dnnl_success) return told(status);
      dnnl_graph_partition_is_supported(created, &supported);
      dnnl_graph_partition_get_op_num(created, &num);
      return told(status) + " supported " + std::to_string(supported) + " ops " + std::to_string(num);
    });
  };
  with_op("relu", [] { return relu(1, 1, 2); });
  with_op("wildcard", [&] { return Op(1, dnnl_graph_op_wildcard, {a}, {b}); });
  with_op("end", [&] { return Op(1, dnnl_graph_op_end, {a}, {}); });
  with_op("wrong", [&] { return Op(1, dnnl_graph_op_relu, {a, b}, {c}); });
}

void compilations() {
  const Tensor a = tensor_of(1, {2, 8}), b = tensor_of(2, {2, 8}), row = tensor_of(4, {8});
  dnnl_graph_partition_t partition = partition_of(relu(1, 1, 2));
  dnnl_graph_compiled_partition_t compiled = nullptr;
  status_line("compiled create null", [&] { return dnnl_graph_compiled_partition_create(nullptr, partition); });
  status_line("compiled create null partition", [&] { return dnnl_graph_compiled_partition_create(&compiled, nullptr); });
  status_line("compiled destroy null", [] { return dnnl_graph_compiled_partition_destroy(nullptr); });
  dnnl_graph_compiled_partition_create(&compiled, partition);
  const Tensor* in[] = {&a};
  const Tensor* out[] = {&b};
  Tensor answer{};
  size_t pairs = 0;
  const dnnl_graph_inplace_pair_t* pair = nullptr;
  status_line("compile null partition",
              [&] { return dnnl_graph_partition_compile(nullptr, compiled, 1, in, 1, out, new_engine()); });
  status_line("compile null compiled",
              [&] { return dnnl_graph_partition_compile(partition, nullptr, 1, in, 1, out, new_engine()); });
  status_line("compile null engine", [&] { return dnnl_graph_partition_compile(partition, compiled, 1, in, 1, out, nullptr); });
  status_line("compile null inputs",
              [&] { return dnnl_graph_partition_compile(partition, compiled, 1, nullptr, 1, out, new_engine()); });
  status_line("compile no inputs",
              [&] { return dnnl_graph_partition_compile(partition, compiled, 0, nullptr, 1, out, new_engine()); });
  status_line("compile no outputs",
              [&] { return dnnl_graph_partition_compile(partition, compiled, 1, in, 0, nullptr, new_engine()); });
  status_line("compile for another partition's object", [&] {
    dnnl_graph_partition_t other = partition_of(relu(1, 1, 2));
    return dnnl_graph_partition_compile(other, compiled, 1, in, 1, out, new_engine());
  });
  line("compile twice", [&] {
    const dnnl_engine_t engine = new_engine();
    return told(dnnl_graph_partition_compile(partition, compiled, 1, in, 1, out, engine)) + " " +
           told(dnnl_graph_partition_compile(partition, compiled, 1, in, 1, out, engine));
  });
  status_line("query before compile", [&] { return dnnl_graph_compiled_partition_query_logical_tensor(compiled, 2, &answer); });
  line("inplace before compile",
       [&] { return told(dnnl_graph_compiled_partition_get_inplace_ports(compiled, &pairs, &pair), pairs); });
  status_line("compile unsupported", [&] {
    dnnl_graph_partition_t wild = partition_of(Op(1, dnnl_graph_op_wildcard, {a}, {b}));
    dnnl_graph_compiled_partition_t of_wild = nullptr;
    dnnl_graph_compiled_partition_create(&of_wild, wild);
    return dnnl_graph_partition_compile(wild, of_wild, 1, in, 1, out, new_engine());
  });
  const auto compile_line = [](const Text& name, const Op& op, const std::vector<Tensor>& inputs,
                               const std::vector<Tensor>& outputs) {
    line("compile " + name, [&] { return told_compilation(op, inputs, outputs); });
  };
  const auto any = dnnl_graph_layout_type_any;
  compile_line("relu", relu(1, 1, 2), {a}, {b});
  compile_line("relu, output any", relu(1, 1, 2), {a}, {tensor_of(2, {2, 8}, dnnl_f32, any)});
  compile_line("relu, output unknown", relu(1, 1, 2), {a}, {unknown(2, 2)});
  compile_line("relu, output rank unknown", relu(1, 1, 2), {a}, {unknown(2)});
  compile_line("relu, output rank unknown, any", relu(1, 1, 2), {a}, {unknown(2, -1, dnnl_f32, any)});
  compile_line("relu, output undef layout", relu(1, 1, 2), {a}, {tensor_of(2, {2, 8}, dnnl_f32, dnnl_graph_layout_type_undef)});
  compile_line("relu, input any", relu(1, 1, 2), {tensor_of(1, {2, 8}, dnnl_f32, any)}, {b});
  compile_line("relu, input undef layout", relu(1, 1, 2), {tensor_of(1, {2, 8}, dnnl_f32, dnnl_graph_layout_type_undef)}, {b});
  compile_line("relu, input unknown", relu(1, 1, 2), {unknown(1, 2)}, {b});
  compile_line("relu, both unknown", relu(1, 1, 2), {unknown(1, 2)}, {unknown(2, 2)});
  compile_line("relu, another input", relu(1, 1, 2), {tensor_of(9, {2, 8})}, {b});
  compile_line("relu, input too many", relu(1, 1, 2), {a, tensor_of(9, {2, 8})}, {b});
  compile_line("relu, another output", relu(1, 1, 2), {a}, {tensor_of(9, {2, 8})});
  compile_line("relu, output too many", relu(1, 1, 2), {a}, {b, tensor_of(9, {2, 8})});
  compile_line("relu, other shape than in the graph", relu(1, 1, 2), {tensor_of(1, {3, 5})}, {tensor_of(2, {3, 5})});
  compile_line("relu, other rank than in the graph", relu(1, 1, 2), {tensor_of(1, {3, 5, 2})}, {tensor_of(2, {3, 5, 2})});
  compile_line("relu, shapes that differ", relu(1, 1, 2), {a}, {tensor_of(2, {2, 9})});
  compile_line("relu, other type", relu(1, 1, 2), {tensor_of(1, {2, 8}, dnnl_bf16)}, {tensor_of(2, {2, 8}, dnnl_bf16)});
  compile_line("relu, output of other type", relu(1, 1, 2), {a}, {tensor_of(2, {2, 8}, dnnl_bf16)});
  compile_line("relu of nothing", Op(1, dnnl_graph_op_relu, {tensor_of(1, {0, 8})}, {tensor_of(2, {0, 8})}),
               {tensor_of(1, {0, 8})}, {tensor_of(2, {0, 8})});
  Tensor gaps = a;
  gaps.layout.strides[0] = 16;
  compile_line("relu, strided input", relu(1, 1, 2), {gaps}, {b});
  Tensor one_place = b;
  one_place.layout.strides[1] = 0;
  compile_line("relu, output in one place", relu(1, 1, 2), {a}, {one_place});
  Tensor opaque = tensor_of(1, {2, 8}, dnnl_f32, dnnl_graph_layout_type_opaque);
  opaque.layout.layout_id = 3;
  compile_line("relu, opaque input", relu(1, 1, 2), {opaque}, {b});
  const auto matmul = [&] { return Op(1, dnnl_graph_op_matmul, {a, tensor_of(3, {8, 4})}, {unknown(2, 2)}); };
  compile_line("matmul", matmul(), {a, tensor_of(3, {8, 4})}, {unknown(2, 2)});
  compile_line("matmul shapes", matmul(), {a, tensor_of(3, {7, 4})}, {unknown(2, 2)});
  compile_line("matmul output of another shape", matmul(), {a, tensor_of(3, {8, 4})}, {tensor_of(2, {2, 5})});
  compile_line("matmul output any", matmul(), {a, tensor_of(3, {8, 4})}, {tensor_of(2, {2, 4}, dnnl_f32, any)});
  compile_line("matmul all any", matmul(), {tensor_of(1, {2, 8}, dnnl_f32, any), tensor_of(3, {8, 4}, dnnl_f32, any)},
               {tensor_of(2, {2, 4}, dnnl_f32, any)});
  Tensor rows_overlap = a;
  rows_overlap.layout.strides[0] = 4;
  compile_line("matmul, rows overlap", matmul(), {rows_overlap, tensor_of(3, {8, 4})}, {unknown(2, 2)});
  compile_line("add in place", Op(1, dnnl_graph_op_add, {a, tensor_of(3, {2, 8})}, {b}), {a, tensor_of(3, {2, 8})}, {b});
  compile_line("add row in place", Op(1, dnnl_graph_op_add, {a, row}, {b}), {a, row}, {b});
  compile_line("add shapes", Op(1, dnnl_graph_op_add, {a, tensor_of(3, {2, 7})}, {b}), {a, tensor_of(3, {2, 7})}, {b});
  for (const int kind :
       {dnnl_graph_op_abs,      dnnl_graph_op_add,         dnnl_graph_op_subtract,      dnnl_graph_op_multiply,
        dnnl_graph_op_divide,   dnnl_graph_op_maximum,     dnnl_graph_op_minimum,       dnnl_graph_op_squared_difference,
        dnnl_graph_op_sigmoid,  dnnl_graph_op_gelu,        dnnl_graph_op_exp,           dnnl_graph_op_round,
        dnnl_graph_op_softmax,  dnnl_graph_op_log_softmax, dnnl_graph_op_relu_backward, dnnl_graph_op_softmax_backward,
        dnnl_graph_op_bias_add, dnnl_graph_op_prelu,       dnnl_graph_op_reorder,       dnnl_graph_op_sqrt}) {
    const bool of_two = kind == dnnl_graph_op_add || kind == dnnl_graph_op_subtract || kind == dnnl_graph_op_multiply ||
                        kind == dnnl_graph_op_divide || kind == dnnl_graph_op_maximum || kind == dnnl_graph_op_minimum ||
                        kind == dnnl_graph_op_squared_difference || kind == dnnl_graph_op_relu_backward ||
                        kind == dnnl_graph_op_softmax_backward || kind == dnnl_graph_op_bias_add || kind == dnnl_graph_op_prelu;
    std::vector<Tensor> in_place = {a};
    if (of_two) in_place.push_back(kind == dnnl_graph_op_bias_add || kind == dnnl_graph_op_prelu ? row : tensor_of(3, {2, 8}));
    compile_line("in place, kind " + std::to_string(kind), Op(1, kind, in_place, {b}), in_place, {b});
  }
  compile_line("softmax", Op(1, dnnl_graph_op_softmax, {a}, {b}).s64(dnnl_graph_op_attr_axis, {1}), {a}, {b});
  compile_line("softmax axis 5", Op(1, dnnl_graph_op_softmax, {a}, {b}).s64(dnnl_graph_op_attr_axis, {5}), {a}, {b});
  compile_line("layer norm",
               Op(1, dnnl_graph_op_layer_norm, {a, row, tensor_of(5, {8})}, {b}).boolean(dnnl_graph_op_attr_keep_stats, false),
               {a, row, tensor_of(5, {8})}, {b});
  compile_line("layer norm epsilon 0",
               Op(1, dnnl_graph_op_layer_norm, {a, row, tensor_of(5, {8})}, {b})
                   .boolean(dnnl_graph_op_attr_keep_stats, false)
                   .f32(dnnl_graph_op_attr_epsilon, {0}),
               {a, row, tensor_of(5, {8})}, {b});
  compile_line("layer norm with statistics",
               Op(1, dnnl_graph_op_layer_norm, {a, row, tensor_of(5, {8})}, {b, unknown(6, 1), unknown(7, 1)}),
               {a, row, tensor_of(5, {8})}, {b, unknown(6, 1), unknown(7, 1)});
  const Tensor image = tensor_of(1, {1, 16, 8, 8}), channels = tensor_of(4, {16});
  const std::vector<Tensor> norm = {image, channels, tensor_of(5, {16}), tensor_of(6, {16}), tensor_of(7, {16})};
  compile_line("batch norm",
               Op(1, dnnl_graph_op_batch_norm_inference, norm, {tensor_of(2, {1, 16, 8, 8})})
                   .f32(dnnl_graph_op_attr_epsilon, {0}, 0)
                   .str(dnnl_graph_op_attr_data_format, "NCX", 1),
               norm, {tensor_of(2, {1, 16, 8, 8})});
  compile_line("reduce without axes", Op(1, dnnl_graph_op_reduce_sum, {a}, {unknown(2)}).s64(dnnl_graph_op_attr_axes, {0}), {a},
               {unknown(2)});
  compile_line("reshape to another size",
               Op(1, dnnl_graph_op_static_reshape, {a}, {unknown(2)})
                   .s64(dnnl_graph_op_attr_shape, {17})
                   .boolean(dnnl_graph_op_attr_special_zero, false),
               {a}, {unknown(2)});

  line("query", [&] {
    dnnl_graph_partition_compile(partition, compiled, 1, in, 1, out, new_engine());
    Text text;
    for (const size_t id : {1, 2, 3})
      text += told(dnnl_graph_compiled_partition_query_logical_tensor(compiled, id, &answer)) + " ";
    text += told(dnnl_graph_compiled_partition_query_logical_tensor(nullptr, 1, &answer)) + " ";
    return text + told(dnnl_graph_compiled_partition_query_logical_tensor(compiled, 1, nullptr));
  });
  line("inplace", [&] {
    dnnl_graph_partition_compile(partition, compiled, 1, in, 1, out, new_engine());
    return told(dnnl_graph_compiled_partition_get_inplace_ports(nullptr, &pairs, &pair)) + " " +
           told(dnnl_graph_compiled_partition_get_inplace_ports(compiled, nullptr, &pair)) + " " +
           told(dnnl_graph_compiled_partition_get_inplace_ports(compiled, &pairs, nullptr));
  });
}

void tensors() {
  const Tensor a = tensor_of(1, {2, 8});
  std::array<float, 16> data{};
  dnnl_graph_tensor_t tensor = nullptr;
  status_line("tensor create null", [&] { return dnnl_graph_tensor_create(nullptr, &a, new_engine(), data.data()); });
  status_line("tensor create null logical",
              [&] { return dnnl_graph_tensor_create(&tensor, nullptr, new_engine(), data.data()); });
  status_line("tensor create null engine", [&] { return dnnl_graph_tensor_create(&tensor, &a, nullptr, data.data()); });
  status_line("tensor create null handle", [&] { return dnnl_graph_tensor_create(&tensor, &a, new_engine(), nullptr); });
  status_line("tensor destroy null", [] { return dnnl_graph_tensor_destroy(nullptr); });
  const auto make = [&](const Text& name, const Tensor& logical, void* memory) {
    line("tensor create " + name, [&, memory] {
      const dnnl_status_t status = dnnl_graph_tensor_create(&tensor, &logical, new_engine(), memory);
      if (status != dnnl_success) return told(status);
      void* handle = &tensor;
      const Text text = told(status) + " " + told(dnnl_graph_tensor_get_data_handle(tensor, &handle));
      return text + (handle == nullptr ? " null" : handle == memory ? " the same" : " another");
    });
  };
  make("of memory", a, data.data());
  make("none", a, DNNL_MEMORY_NONE);
  make("allocate", a, DNNL_MEMORY_ALLOCATE);
  make("allocate scalar", tensor_of(1, {}), DNNL_MEMORY_ALLOCATE);
  make("rank unknown", unknown(1), data.data());
  make("rank unknown, null", unknown(1), nullptr);
  make("dims unknown", unknown(1, 2), data.data());
  make("any", tensor_of(1, {2, 8}, dnnl_f32, dnnl_graph_layout_type_any), data.data());
  make("any allocate", tensor_of(1, {2, 8}, dnnl_f32, dnnl_graph_layout_type_any), DNNL_MEMORY_ALLOCATE);
  make("undef type", tensor_of(1, {2, 8}, dnnl_data_type_undef), data.data());
  make("negative dim", tensor_of(1, {2, -8}), data.data());
  make("layout undef", tensor_of(1, {2, 8}, dnnl_f32, dnnl_graph_layout_type_undef), data.data());
  dnnl_graph_tensor_create(&tensor, &a, new_engine(), data.data());
  void* handle = nullptr;
  dnnl_engine_t engine = nullptr;
  status_line("tensor handle null", [&] { return dnnl_graph_tensor_get_data_handle(nullptr, &handle); });
  status_line("tensor handle null handle", [&] { return dnnl_graph_tensor_get_data_handle(tensor, nullptr); });
  status_line("tensor set null", [&] { return dnnl_graph_tensor_set_data_handle(nullptr, data.data()); });
  line("tensor set null handle", [&] {
    const Text text = told(dnnl_graph_tensor_set_data_handle(tensor, nullptr));
    dnnl_graph_tensor_get_data_handle(tensor, &handle);
    return text + (handle == nullptr ? " null" : " something");
  });
  status_line("tensor engine null", [&] { return dnnl_graph_tensor_get_engine(nullptr, &engine); });
  status_line("tensor engine null engine", [&] { return dnnl_graph_tensor_get_engine(tensor, nullptr); });
  line("tensor engine", [&] {
    const dnnl_engine_t mine = new_engine();
    dnnl_graph_tensor_create(&tensor, &a, mine, data.data());
    const Text text = told(dnnl_graph_tensor_get_engine(tensor, &engine));
    dnnl_engine_kind_t kind = dnnl_any_engine;
    dnnl_engine_get_kind(engine, &kind);
    return text + (engine == mine ? " the same" : " another") + " kind " + std::to_string(kind);
  });
}

// A relu, compiled, with tensors that can be changed.
struct Execution {
  dnnl_engine_t engine = new_engine();
  dnnl_stream_t stream = new_stream(engine);
  std::vector<float> src = std::vector<float>(16, -1.0f), dst = std::vector<float>(16, 5.0f);
  dnnl_graph_compiled_partition_t compiled = nullptr;
  std::vector<const_dnnl_graph_tensor_t> inputs, outputs;

  explicit Execution(const Tensor& in = tensor_of(1, {2, 8}), const Tensor& out = tensor_of(2, {2, 8}), bool compiles = true) {
    dnnl_graph_partition_t partition = partition_of(relu(1, 1, 2));
    dnnl_graph_compiled_partition_create(&compiled, partition);
    if (compiles) compile(partition, compiled, {tensor_of(1, {2, 8})}, {tensor_of(2, {2, 8})}, engine);
    for (size_t i = 0; i < src.size(); i += 2) src[i] = static_cast<float>(i);
    inputs.push_back(bound(in, src.data()));
    outputs.push_back(bound(out, dst.data()));
  }
  const_dnnl_graph_tensor_t bound(const Tensor& logical, void* memory) const {
    dnnl_graph_tensor_t tensor = nullptr;
    dnnl_graph_tensor_create(&tensor, &logical, engine, memory);
    return tensor;
  }
  dnnl_status_t run(dnnl_stream_t on) {
    return dnnl_graph_compiled_partition_execute(compiled, on, inputs.size(), inputs.data(), outputs.size(), outputs.data());
  }
  Text told_run() {
    const dnnl_status_t status = run(stream);
    dnnl_stream_wait(stream);
    Text text = told(status);
    if (status != dnnl_success) return text;
    for (const float value : dst) text += " " + std::to_string(static_cast<int>(value));
    return text;
  }
};

void executions() {
  line("execute", [] { return Execution().told_run(); });
  status_line("execute null compiled", [] {
    Execution e;
    return dnnl_graph_compiled_partition_execute(nullptr, e.stream, 1, e.inputs.data(), 1, e.outputs.data());
  });
  status_line("execute null stream", [] {
    Execution e;
    return e.run(nullptr);
  });
  status_line("execute null inputs", [] {
    Execution e;
    return dnnl_graph_compiled_partition_execute(e.compiled, e.stream, 1, nullptr, 1, e.outputs.data());
  });
  status_line("execute null outputs", [] {
    Execution e;
    return dnnl_graph_compiled_partition_execute(e.compiled, e.stream, 1, e.inputs.data(), 1, nullptr);
  });
  line("execute a null tensor", [] {
    Execution e;
    e.inputs[0] = nullptr;
    return e.told_run();
  });
  line("execute before compile", [] { return Execution(tensor_of(1, {2, 8}), tensor_of(2, {2, 8}), false).told_run(); });
  line("execute tensors of unknown rank", [] { return Execution(unknown(1), unknown(2)).told_run(); });
  line("execute tensors of unknown dims", [] { return Execution(unknown(1, 2), unknown(2, 2)).told_run(); });
  line("execute tensors of layout any", [] {
    return Execution(tensor_of(1, {2, 8}, dnnl_f32, dnnl_graph_layout_type_any),
                     tensor_of(2, {2, 8}, dnnl_f32, dnnl_graph_layout_type_any))
        .told_run();
  });
  Tensor columns = tensor_of(1, {2, 8});
  columns.layout.strides[0] = 1, columns.layout.strides[1] = 2;
  line("execute a tensor of other strides", [&] { return Execution(columns).told_run(); });
  line("execute a tensor of rows, compiled for columns", [&] {
    Execution e(tensor_of(1, {2, 8}), tensor_of(2, {2, 8}), false);
    dnnl_graph_partition_t partition = partition_of(relu(1, 1, 2));
    dnnl_graph_compiled_partition_create(&e.compiled, partition);
    compile(partition, e.compiled, {columns}, {tensor_of(2, {2, 8})}, e.engine);
    return e.told_run();
  });
  line("execute another input id", [] { return Execution(tensor_of(9, {2, 8})).told_run(); });
  line("execute another output id", [] { return Execution(tensor_of(1, {2, 8}), tensor_of(9, {2, 8})).told_run(); });
  line("execute inputs too many", [] {
    Execution e;
    e.inputs.push_back(e.bound(tensor_of(9, {2, 8}), e.src.data()));
    return e.told_run();
  });
  line("execute no inputs", [] {
    Execution e;
    e.inputs.clear();
    return e.told_run();
  });
  line("execute no outputs", [] {
    Execution e;
    e.outputs.clear();
    return e.told_run();
  });
  line("execute a smaller tensor", [] { return Execution(tensor_of(1, {1, 8}), tensor_of(2, {1, 8})).told_run(); });
  line("execute another type", [] { return Execution(tensor_of(1, {2, 8}, dnnl_s32)).told_run(); });
  line("execute null memory", [] {
    Execution e;
    e.inputs[0] = e.bound(tensor_of(1, {2, 8}), nullptr);
    return e.told_run();
  });
  line("execute in place", [] {
    Execution e;
    e.outputs[0] = e.bound(tensor_of(2, {2, 8}), e.src.data());
    const dnnl_status_t status = e.run(e.stream);
    return told(status) + " " + std::to_string(static_cast<int>(e.src[1])) + std::to_string(static_cast<int>(e.src[2]));
  });
  line("execute on a stream of another engine", [] {
    Execution e;
    return told(e.run(new_stream(new_engine())));
  });
  line("execute ten times", [] {
    Execution e;
    Text text;
    for (int i = 0; i < 10; ++i) text = e.told_run();
    return text;
  });
}

void settings() {
  int flag = 9;
  line("constant cache at first", [&] { return told(dnnl_graph_get_constant_tensor_cache(&flag), flag); });
  status_line("constant cache get null", [] { return dnnl_graph_get_constant_tensor_cache(nullptr); });
  for (const int value : {-1, 0, 1, 5})
    line("constant cache " + std::to_string(value), [&] {
      const Text text = told(dnnl_graph_set_constant_tensor_cache(value));
      return text + " " + told(dnnl_graph_get_constant_tensor_cache(&flag), flag);
    });
  int capacity = 9;
  line("compiled cache at first", [&] { return told(dnnl_graph_get_compiled_partition_cache_capacity(&capacity), capacity); });
  status_line("compiled cache get null", [] { return dnnl_graph_get_compiled_partition_cache_capacity(nullptr); });
  for (const int value : {-1, 0, 1, 4096})
    line("compiled cache " + std::to_string(value), [&] {
      const Text text = told(dnnl_graph_set_compiled_partition_cache_capacity(value));
      return text + " " + told(dnnl_graph_get_compiled_partition_cache_capacity(&capacity), capacity);
    });
  dnnl_fpmath_mode_t mode = dnnl_fpmath_mode_any;
  line("fpmath at first", [&] { return told(dnnl_get_default_fpmath_mode(&mode), mode); });
  status_line("fpmath get null", [] { return dnnl_get_default_fpmath_mode(nullptr); });
  for (const int value : {0, 1, 2, 3, 9, -1})
    line("fpmath " + std::to_string(value), [&] {
      const Text text = told(dnnl_set_default_fpmath_mode(static_cast<dnnl_fpmath_mode_t>(value)));
      return text + " " + told(dnnl_get_default_fpmath_mode(&mode), mode);
    });
  for (const int level : {0, -1, 9}) status_line("verbose " + std::to_string(level), [&] { return dnnl_set_verbose(level); });
  line("version", [] {
    const dnnl_version_t* version = dnnl_version();
    return std::to_string(version->major) + "." + std::to_string(version->minor);
  });
}

void* allocate(size_t size, size_t alignment) { return aligned_alloc(alignment == 0 ? 64 : alignment, (size + 63) / 64 * 64); }
void release(void* memory) { free(memory); }

void engines() {
  dnnl_engine_t engine = nullptr;
  status_line("engine create null", [] { return dnnl_engine_create(nullptr, dnnl_cpu, 0); });
  status_line("engine create index 9", [&] { return dnnl_engine_create(&engine, dnnl_cpu, 9); });
  status_line("engine create kind 9", [&] { return dnnl_engine_create(&engine, number_as<dnnl_engine_kind_t>(9), 0); });
  status_line("engine destroy null", [] { return dnnl_engine_destroy(nullptr); });
  dnnl_graph_allocator_t allocator = nullptr;
  status_line("allocator create null", [] { return dnnl_graph_allocator_create(nullptr, allocate, release); });
  status_line("allocator create", [&] { return dnnl_graph_allocator_create(&allocator, allocate, release); });
  status_line("allocator create of nothing", [&] { return dnnl_graph_allocator_create(&allocator, nullptr, nullptr); });
  status_line("allocator create of half", [&] { return dnnl_graph_allocator_create(&allocator, allocate, nullptr); });
  status_line("allocator destroy null", [] { return dnnl_graph_allocator_destroy(nullptr); });
  dnnl_graph_allocator_create(&allocator, allocate, release);
  status_line("engine with allocator null",
              [&] { return dnnl_graph_make_engine_with_allocator(nullptr, dnnl_cpu, 0, allocator); });
  status_line("engine with null allocator",
              [&] { return dnnl_graph_make_engine_with_allocator(&engine, dnnl_cpu, 0, nullptr); });
  status_line("engine with allocator index 9",
              [&] { return dnnl_graph_make_engine_with_allocator(&engine, dnnl_cpu, 9, allocator); });
  status_line("engine with allocator gpu",
              [&] { return dnnl_graph_make_engine_with_allocator(&engine, dnnl_gpu, 0, allocator); });
  line("engine with allocator", [&] {
    const Text text = told(dnnl_graph_make_engine_with_allocator(&engine, dnnl_cpu, 0, allocator));
    dnnl_engine_kind_t kind = dnnl_any_engine;
    const Text kind_text = told(dnnl_engine_get_kind(engine, &kind), kind);
    return text + " " + kind_text + " " + told(dnnl_engine_destroy(engine)) + " " +
           told(dnnl_graph_allocator_destroy(allocator));
  });
}

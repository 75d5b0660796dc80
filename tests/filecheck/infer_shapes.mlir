// RUN: foldline-opt %s -p infer-shapes | filecheck %s
// Unknown types become known; names of sizes go along.

builtin.module attributes {onnx.ir_version = 10 : i64} {
  onnx.graph() {opsets = #onnx.opsets<"" : 20>} ({
  ^bb0(%0: tensor<?x3xf32, #onnx.dims<"N", _>>):
    %1 = onnx.Transpose(%0) {perm = array<i64: 1, 0>, onnx.names = #onnx.names<"t" : "t">} : !onnx.unknown
    %2 = onnx.Shape(%1) {onnx.names = #onnx.names<"s" : "s">} : !onnx.unknown
    onnx.return(%2) {interface = #onnx.interface<"g", ["x" : tensor<?x3xf32, #onnx.dims<"N", _>>], ["s"], []>}
  })
}

// CHECK:      onnx.Transpose(%0)
// CHECK-SAME: tensor<3x?xf32, #onnx.dims<_, "N">>
// CHECK-NEXT: onnx.Shape(%1)
// CHECK-SAME: tensor<2xi64>

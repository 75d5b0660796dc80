// RUN: foldline-opt %s -p remove-conditionals | filecheck %s
// An If of a constant becomes the branch that it takes.

builtin.module attributes {onnx.ir_version = 10 : i64} {
  onnx.graph() {opsets = #onnx.opsets<"" : 20>} ({
  ^bb0(%0: tensor<2xf32>):
    %1 = onnx.initializer() {value = #onnx.tensor<"bool", [], typed, "00">, onnx.names = #onnx.names<_ : "c">} : tensor<i1>
    %2 = onnx.If(%1) {graph_names = #onnx.texts<"then_branch", "else_branch">, onnx.names = #onnx.names<"i" : "y">} ({
      %3 = onnx.Neg(%0) {onnx.names = #onnx.names<_ : "p">} : tensor<2xf32>
      onnx.return(%3) {interface = #onnx.interface<"a", [], ["p" : tensor<2xf32>], []>}
    }, {
      %4 = onnx.Abs(%0) {onnx.names = #onnx.names<_ : "q">} : tensor<2xf32>
      onnx.return(%4) {interface = #onnx.interface<"b", [], ["q" : tensor<2xf32>], []>}
    }) : tensor<2xf32>
    onnx.return(%2) {interface = #onnx.interface<"g", ["x" : tensor<2xf32>], ["y" : tensor<2xf32>], []>}
  })
}

// CHECK:     onnx.Abs(%0)
// CHECK-NOT: onnx.If
// CHECK-NOT: onnx.Neg

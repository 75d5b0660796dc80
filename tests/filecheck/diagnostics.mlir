// RUN: foldline-opt %s --split-input-file --verify-diagnostics --parsing-diagnostics | filecheck %s
// What the verifier says of models that are none.

builtin.module attributes {onnx.ir_version = 10 : i64} {
  onnx.graph() {opsets = #onnx.opsets<"" : 20>} ({
  ^bb0(%0: tensor<2xf32>):
    %1 = onnx.Neg(%0, %0) {onnx.names = #onnx.names<"n" : "y">} : tensor<2xf32>
    onnx.return(%1) {interface = #onnx.interface<"g", ["x" : tensor<2xf32>], ["y" : tensor<2xf32>], []>}
  })
}
// CHECK: graph: onnx.Neg (node 'n'): has 2 inputs, expected 1
// -----
builtin.module attributes {onnx.ir_version = 10 : i64} {
  onnx.graph() {opsets = #onnx.opsets<"" : 20>} ({
  ^bb0(%0: tensor<2xi1>):
    %1 = onnx.Neg(%0) {onnx.names = #onnx.names<"n" : "y">} : tensor<2xi1>
    onnx.return(%1) {interface = #onnx.interface<"g", ["x" : tensor<2xi1>], ["y" : tensor<2xi1>], []>}
  })
}
// CHECK: graph: onnx.Neg (node 'n'): input 0 'X' is tensor(bool), expected one of tensor(bfloat16)
// -----
builtin.module attributes {onnx.ir_version = 10 : i64} {
  onnx.graph() {opsets = #onnx.opsets<"" : 20>} ({
  ^bb0(%0: tensor<2xf32>):
    %1 = onnx.Neg(%0) {onnx.names = #onnx.names<"one" : "y">} : tensor<2xf32>
    %2 = onnx.Abs(%1) {onnx.names = #onnx.names<"two" : "y">} : tensor<2xf32>
    onnx.return(%2) {interface = #onnx.interface<"g", ["x" : tensor<2xf32>], ["y" : tensor<2xf32>], []>}
  })
}
// CHECK: graph: onnx.Abs (node 'two'): 'y' is defined twice
// -----
builtin.module attributes {onnx.ir_version = 10 : i64} {
  onnx.graph() {opsets = #onnx.opsets<"" : 20>} ({
  ^bb0(%0: tensor<2xf32>):
    %1 = onnx.Nag(%0) {onnx.names = #onnx.names<"n" : "y">} : tensor<2xf32>
  })
}
// CHECK: Operation onnx.Nag is not registered

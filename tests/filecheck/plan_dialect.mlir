// RUN: foldline-opt %s | filecheck %s
// The text of the plan dialect, which sessions run.

plan.program() {interface = #onnx.interface<"g", ["x" : tensor<2xf32>], ["y" : tensor<2xf32>], []>, defaults = [unit]} ({
^bb0(%0: tensor<2xf32>):
  %1 = plan.call(%0, %0) {domain = #onnx.text<"">, op_type = #onnx.text<"Add">, since = 14 : i64, kernel = #onnx.text<"reference">, given = {}, facts = #onnx.texts<"element-wise">, frees = array<i64: 0>, onnx.names = #onnx.names<_ : "y">} : tensor<2xf32>
  plan.return(%1)
})

// CHECK:      plan.program() {interface = #onnx.interface<"g", ["x" : tensor<2xf32>], ["y" : tensor<2xf32>], []>, defaults = [unit]} ({
// CHECK-NEXT: ^bb0(%0: tensor<2xf32>):
// CHECK-NEXT:   %1 = plan.call(%0, %0) {domain = #onnx.text<"">, op_type = #onnx.text<"Add">, since = 14 : i64,
// CHECK-SAME: facts = #onnx.texts<"element-wise">, frees = array<i64: 0>
// CHECK-NEXT:   plan.return(%1)

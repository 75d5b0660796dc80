// RUN: foldline-opt %s -p inline-functions | filecheck %s

builtin.module attributes {onnx.ir_version = 10 : i64} {
  onnx.function() {sym_name = "local::Twice", domain = #onnx.text<"local">, op_type = #onnx.text<"Twice">, opsets = #onnx.opsets<"" : 20>, parameters = #onnx.texts<>, defaults = {}} ({
  ^bb0(%a: !onnx.unknown):
    %b = onnx.Add(%a, %a) {onnx.names = #onnx.names<"add" : "b">} : !onnx.unknown
    onnx.return(%b) {interface = #onnx.interface<_, ["a"], ["b"], []>}
  })
  onnx.graph() {opsets = #onnx.opsets<"" : 20, "local" : 1>} ({
  ^bb0(%x: tensor<2xf32>):
    %y = onnx.call(%x) {callee = @"local::Twice", given = {}, onnx.names = #onnx.names<"n" : "y">} : tensor<2xf32>
    onnx.return(%y) {interface = #onnx.interface<"g", ["x" : tensor<2xf32>], ["y" : tensor<2xf32>], []>}
  })
}

// CHECK:     onnx.Add(%x, %x) {onnx.names = #onnx.names<"n/add" : "y">} : tensor<2xf32>
// CHECK-NOT: onnx.call

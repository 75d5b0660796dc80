// RUN: foldline-opt %s | filecheck %s
// The text of the onnx dialect: names, bodies, symbolic sizes, absent inputs.

builtin.module attributes {onnx.ir_version = 10 : i64} {
  onnx.graph() {opsets = #onnx.opsets<"" : 20>} ({
  ^bb0(%x: tensor<?x3xf32, #onnx.dims<"N", _>>, %c: tensor<i1>):
    %none = onnx.none() : !onnx.absent
    %high = onnx.initializer() {value = #onnx.tensor<"float", [], typed, "0000c040">, onnx.names = #onnx.names<_ : "high">} : tensor<f32>
    %k = onnx.Clip(%x, %none, %high) {onnx.names = #onnx.names<"clip" : "größe">} : !onnx.unknown
    %y = onnx.If(%c) {graph_names = #onnx.texts<"then_branch", "else_branch">, onnx.names = #onnx.names<"choose" : "y">} ({
      %p = onnx.Neg(%k) {onnx.names = #onnx.names<_ : "p">} : !onnx.unknown
      onnx.return(%p) {interface = #onnx.interface<"a", [], ["p"], []>}
    }, {
      %q = onnx.LeakyRelu(%k) {alpha = 5.000000e-01 : f32, onnx.names = #onnx.names<_ : "q">} : !onnx.unknown
      onnx.return(%q) {interface = #onnx.interface<"b", [], ["q"], []>}
    }) : !onnx.unknown
    onnx.return(%y) {interface = #onnx.interface<"g", ["x" : tensor<?x3xf32, #onnx.dims<"N", _>>, "c" : tensor<i1>], ["y"], []>}
  })
}

// CHECK:       builtin.module attributes {onnx.ir_version = 10 : i64} {
// CHECK-NEXT:    onnx.graph() {opsets = #onnx.opsets<"" : 20>} ({
// CHECK-NEXT:    ^bb0(%x: tensor<?x3xf32, #onnx.dims<"N", _>>, %c: tensor<i1>):
// CHECK-NEXT:      %none = onnx.none() : !onnx.absent
// CHECK-NEXT:      %high = onnx.initializer() {value = #onnx.tensor<"float", [], typed, "0000c040">, onnx.names = #onnx.names<_ : "high">} : tensor<f32>
// CHECK-NEXT:      %k = onnx.Clip(%x, %none, %high) {onnx.names = #onnx.names<"clip" : "gr%C3%B6%C3%9Fe">} : !onnx.unknown
// CHECK-NEXT:      %y = onnx.If(%c)
// CHECK-NEXT:        %p = onnx.Neg(%k)
// CHECK-NEXT:        onnx.return(%p) {interface = #onnx.interface<"a", [], ["p"], []>}
// CHECK-NEXT:      }, {
// CHECK-NEXT:        %q = onnx.LeakyRelu(%k) {alpha = 5.000000e-01 : f32

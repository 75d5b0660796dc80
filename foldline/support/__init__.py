"""What every layer may use; imports neither onnx nor xdsl."""

"""YAML compile configurations that ship with Foldline; `README.md` says what each is for."""

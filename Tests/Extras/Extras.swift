// Empty: the dependencies of this target are what `make extras` compiles.

// HttpWareTesting

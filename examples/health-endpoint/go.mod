module example.org/greeter

go 1.24

module example.com/adder

go 1.26

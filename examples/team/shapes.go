package main

type shape struct {
	name string
	area float64
}

var shapes = []shape{
	{"square", square(2)},
}

// square returns the area of a square by the length of its side.
func square(side float64) float64 { return side * side }

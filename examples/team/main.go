// Shapes prints the areas of some shapes.
package main

import "fmt"

func main() {
	for _, s := range shapes {
		fmt.Printf("%-10s %6.2f\n", s.name, s.area)
	}
}

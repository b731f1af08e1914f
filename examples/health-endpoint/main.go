// Greeter answers /greet?name=NAME with a greeting.
package main

import (
	"log"
	"net/http"
)

func main() {
	log.Fatal(http.ListenAndServe("localhost:8080", routes()))
}

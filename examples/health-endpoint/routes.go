package main

import (
	"fmt"
	"net/http"
)

// routes returns the handler of all requests.
func routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /greet", greet)
	return mux
}

// greet answers with a greeting of who is named in the query.
func greet(w http.ResponseWriter, r *http.Request) {
	fmt.Fprintf(w, "Hello, %s!\n", r.URL.Query().Get("name"))
}

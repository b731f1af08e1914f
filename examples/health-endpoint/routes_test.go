package main

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

// ask sends a request to the server, and returns the code and the text of its answer.
func ask(path string) (int, string) {
	answer := httptest.NewRecorder()
	routes().ServeHTTP(answer, httptest.NewRequest(http.MethodGet, path, nil))
	return answer.Code, answer.Body.String()
}

func TestGreet(t *testing.T) {
	if code, text := ask("/greet?name=Ann"); code != http.StatusOK || text != "Hello, Ann!\n" {
		t.Errorf("GET /greet?name=Ann = %d %q", code, text)
	}
}

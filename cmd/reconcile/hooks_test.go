package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"sync"

	"github.com/rogpeppe/go-internal/testscript"
)

// hooks starts a receiver of webhooks, and sets $HOOKS to its address: "hooks SECRET STATUS…". It answers with the statuses in turn, then
// with 200, and appends a line for each request to the file hooks: path, delivery, whether the signature is right, and the text.
func hooks(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: hooks SECRET [STATUS…]")
	}
	secret, statuses, file := args[0], args[1:], filepath.Join(ts.Getenv("WORK"), "hooks")
	var mu sync.Mutex
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		body, _ := io.ReadAll(r.Body)
		m := hmac.New(sha256.New, []byte(secret))
		m.Write(body)
		signed := hmac.Equal([]byte(r.Header.Get("Reconcile-Signature-256")), []byte("sha256="+hex.EncodeToString(m.Sum(nil))))
		var told struct{ Text, Delivery string }
		_ = json.Unmarshal(body, &told)
		if told.Delivery != r.Header.Get("Reconcile-Delivery") {
			told.Delivery = "another"
		}
		f, err := os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
		if err != nil {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		defer f.Close()
		fmt.Fprintf(f, "%s %s signed=%t %s\n", r.URL.Path, told.Delivery, signed, told.Text)
		status := http.StatusOK
		if len(statuses) > 0 {
			status, _ = strconv.Atoi(statuses[0])
			statuses = statuses[1:]
		}
		if status/100 == 3 {
			w.Header().Set("Location", "/elsewhere")
		}
		w.WriteHeader(status)
		fmt.Fprintf(w, "answer %d to %s\n", status, secret)
	}))
	ts.Defer(s.Close)
	ts.Setenv("HOOKS", s.URL)
}

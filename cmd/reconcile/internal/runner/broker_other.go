//go:build !linux

package runner

import (
	"errors"
	"os"
)

// broker exists only where runs can be confined.
type broker struct{}

var errNoBroker = errors.New("runs cannot be confined on this system")

func (*attempt) openBroker(string) (*broker, error) { return nil, errNoBroker }

func (*broker) path() string { return "" }

func (*broker) close() {}

// AskHost returns an error: runs cannot be confined on this system.
func AskHost(string, []string, [3]*os.File) (int, error) { return 0, errNoBroker }

package runner

import "encoding/json"

// claimedFiles returns the field filesChanged of a result; nil without one.
func claimedFiles(result []byte) []string {
	var said struct {
		FilesChanged []string `json:"filesChanged"`
	}
	if len(result) == 0 || result[0] != '{' || json.Unmarshal(result, &said) != nil {
		return nil
	}
	return said.FilesChanged
}

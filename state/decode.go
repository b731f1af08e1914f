package state

import (
	"bytes"
	"errors"
	"fmt"

	"reconcile.dev/reconcile/schemas"
)

// DecodeStatus reads what [EncodeStatus] wrote of an object of one of the kinds, for those who have the bytes of a status
// and no tree. Unknown fields are passed over.
func DecodeStatus(kinds schemas.Kinds, data []byte) (schemas.Ref, schemas.Status, error) {
	var head envelope
	if err := decodeState(data, bytes.Clone(data), &head); err != nil {
		return schemas.Ref{}, nil, err
	}
	if head.APIVersion != schemas.APIVersion {
		return schemas.Ref{}, nil, fmt.Errorf("its apiVersion is %q, not %q", head.APIVersion, schemas.APIVersion)
	}
	for _, k := range kinds {
		if k.Name != head.Kind || k.NewStatus == nil {
			continue
		}
		e := envelope{Status: k.NewStatus()}
		if err := decodeState(data, bytes.Clone(data), &e); err != nil {
			return schemas.Ref{}, nil, err
		}
		status, ok := e.Status.(schemas.Status)
		if !ok || head.Status == nil {
			return schemas.Ref{}, nil, errors.New("it has no status")
		}
		return schemas.Ref{Kind: k.Name, Name: head.Metadata.Name}, status, nil
	}
	return schemas.Ref{}, nil, fmt.Errorf("no kind with statuses is called %q", head.Kind)
}

// DecodeRun reads what [EncodeRun] wrote.
func DecodeRun(data []byte) (*schemas.Run, error) {
	var head struct {
		Key string `json:"key"`
	}
	if err := decodeState(data, bytes.Clone(data), &head); err != nil {
		return nil, err
	}
	return decodeRun(head.Key, data, bytes.Clone(data))
}

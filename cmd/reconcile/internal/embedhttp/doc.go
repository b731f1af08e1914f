// Package embedhttp computes vectors of texts with an endpoint that implements OpenAI's API: POST /embeddings, with the
// model and the texts. Ollama, llama.cpp, vLLM and others do.
//
// # Requests
//
// Texts are sent in batches, a few batches concurrently, with a maximum number of requests per minute from the settings. A
// temporary failure (no connection, 408, 429, 5xx) is retried with growing waits, or after the time that the endpoint
// names. A refused batch (400, 413, 422) is halved, and a single refused text is cut, down to leastText bytes: models have
// limits, and one long text must not keep all others from being found. A single text, such as a query, is waited for no
// longer than Options.Patience. Texts and the key are sent by https, or to this machine; redirects are not followed, since
// they would send both elsewhere. The key is in no error.
//
// # Responses
//
// Responses are untrusted: a response is read up to its maximum size; each text must have exactly one vector, of the
// dimensions of the settings, of finite numbers that are not all zero. Vectors are scaled to length 1.
//
// # Cache
//
// Every vector is stored at once, under the digest of model and text, so that no text is requested twice: not by a rebuild,
// not after an interruption, not by another process. See [Cache].
package embedhttp

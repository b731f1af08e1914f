// Package meter is the metering proxy: a server on the loopback interface between agents and the services of their models.
//
// It holds the key of the service; an agent gets a random token of its run instead. It counts requests and tokens from what
// goes over the wire, in the formats of Anthropic (messages), OpenAI (responses and chat completions) and Google
// (generateContent), computes the cost by a table of prices, and refuses requests that exceed the budget of the run with an
// error in the service's own format. A request that runs is never cut. Everything else below the address of the service
// passes unchanged, and nothing goes anywhere else. A stream is forwarded as it arrives.
//
// The key is never written anywhere: it is added to requests as they leave, and removed from whatever comes back.
package meter

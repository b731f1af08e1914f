// Package claims keeps two reconcilers that share a remote repository from performing one effect twice.
//
// A [Keeper] stands before whoever performs effects. It claims an effect on the remote before it hands it on, looks
// whether the result is there already, renews the claim while the effect is performed and until the result was pushed,
// and gives it back then. What another reconciler has claimed is released at once, and [Keeper.Elsewhere] names it until
// the claim ends or runs out.
//
// # Why one effect is not performed twice
//
// A claim that nobody renews for Options.For may be taken over; whoever takes it over has watched it for that long on a
// clock of its own. The holder counts from the moment before it pushed the last renewal, and ends what it runs before
// that time is up: claims exclude each other as long as clocks run at the same speed, whatever they show. A result is
// pushed before its claim is given back, and looked for after the claim was taken: one of both is always seen.
//
// A holder that is stopped for longer than Options.For, and goes on before it notices, is not excluded. What it comes to is
// not recorded then.
package claims

# A menu; everything in it can be had without make, too. CI calls the same words.
SHELL := /bin/sh
CHECK := go run ./cmd/reconcile/internal/check
N ?= 10000
DIR ?= dist/tree
PLATFORMS := linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64
# Without cgo the program is one static file: it needs nothing of the system, and starts a millisecond sooner.
BUILD := go build -trimpath -ldflags='-s -w'
VERSION ?= $(shell git describe --tags --always --dirty)

.DEFAULT_GOAL := help
.PHONY: help build test lint race generate verify bench bench-tree cover clean release

help: ## Show this menu
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## Build bin/reconcile
	CGO_ENABLED=0 $(BUILD) -o bin/reconcile ./cmd/reconcile

test: ## Check everything, as CI does
	$(CHECK)

lint: ## Check format, vet, staticcheck, workflows and import rules
	$(CHECK) format vet staticcheck workflows rules

race: ## Test what shares memory under the race detector
	$(CHECK) race

generate: ## Write schemas and pages from the Go types
	go run ./cmd/reconcile/internal/gen

verify: ## Check that generated files and go.mod are up to date
	$(CHECK) generated modules

bench: ## Measure speed and memory beside what they are compared with
	go run ./cmd/reconcile/internal/bench run

bench-tree: ## Generate a tree of N=10000 objects in DIR=dist/tree
	go run ./cmd/reconcile/internal/bench tree -n $(N) $(DIR)

cover: ## Write the coverage of the tests to dist/cover.html
	@mkdir -p dist
	go test -coverpkg=./... -coverprofile=dist/cover.out ./...
	go tool cover -html=dist/cover.out -o dist/cover.html

clean: ## Remove what the other targets made
	rm -rf bin dist

release: ## Build dist/reconcile-VERSION-* for every platform, with checksums
	@mkdir -p dist
	@for p in $(PLATFORMS); do \
		os=$${p%/*}; arch=$${p#*/}; ext=; [ $$os = windows ] && ext=.exe; \
		echo "dist/reconcile-$(VERSION)-$$os-$$arch$$ext"; \
		CGO_ENABLED=0 GOOS=$$os GOARCH=$$arch $(BUILD) -o \
			"dist/reconcile-$(VERSION)-$$os-$$arch$$ext" ./cmd/reconcile || exit 1; \
	done
	@cd dist && sha256sum reconcile-$(VERSION)-* > SHA256SUMS

// A server of Google Cloud Storage's API on this machine, and the proxy by which clients that ask for the real one come
// to it: whatever they want to be connected to, it is this server. At /token it gives everybody a token, as Google does.
//
//	gcsserver PORT CERTIFICATE KEY BUCKET
package main

import (
	"crypto/tls"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"strings"

	"github.com/fsouza/fake-gcs-server/fakestorage"
)

const loopback, host = "127.0.0.1", "storage.googleapis.com"

func main() {
	if len(os.Args) != 5 {
		log.Fatal("usage: gcsserver PORT CERTIFICATE KEY BUCKET")
	}
	port, certificate, key, bucket := os.Args[1], os.Args[2], os.Args[3], os.Args[4]
	server, err := fakestorage.NewServerWithOptions(fakestorage.Options{NoListener: true, PublicHost: host})
	require(err)
	server.CreateBucketWithOpts(fakestorage.CreateBucketOpts{Name: bucket})
	pair, err := tls.LoadX509KeyPair(certificate, key)
	require(err)
	secure, err := tls.Listen("tcp", net.JoinHostPort(loopback, "0"), &tls.Config{Certificates: []tls.Certificate{pair}})
	require(err)
	handler := oneSlash(server.HTTPHandler())
	go func() { require(http.Serve(secure, handler)) }()
	require(http.ListenAndServe(net.JoinHostPort(loopback, port), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == http.MethodConnect:
			tunnel(w, secure.Addr().String())
		case r.URL.Path == "/token":
			w.Header().Set("Content-Type", "application/json")
			io.WriteString(w, `{"access_token": "anybody", "token_type": "Bearer", "expires_in": 3600}`)
		default:
			handler.ServeHTTP(w, r)
		}
	})))
}

// oneSlash is for what Google's clients in Java ask for: batches are at //batch/storage/v1.
func oneSlash(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.URL.Path = "/" + strings.TrimLeft(r.URL.Path, "/")
		handler.ServeHTTP(w, r)
	})
}

// tunnel connects the client with the address, until one of the two ends.
func tunnel(w http.ResponseWriter, address string) {
	target, err := net.Dial("tcp", address)
	require(err)
	defer target.Close()
	client, received, err := w.(http.Hijacker).Hijack()
	require(err)
	defer client.Close()
	io.WriteString(client, "HTTP/1.1 200 Connection established\r\n\r\n")
	ended := make(chan struct{}, 2)
	move := func(to io.Writer, from io.Reader) {
		io.Copy(to, from)
		ended <- struct{}{}
	}
	go move(target, received)
	go move(client, target)
	<-ended
}

func require(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

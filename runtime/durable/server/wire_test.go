package server_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/topogen/topogen/internal/test/script"
	"github.com/topogen/topogen/runtime/durable/server"
)

// TestWire runs the transcripts in testdata, one for each part of the table of the
// protocol. They go over HTTP to a real engine, in debug mode. Their commands are
//
//	at MS        sets the time of the requests that follow
//	KIND JSON    sends a request with this kind and data
//	text JSON    sends a whole request
//
// and the output is the status and the data of the response. Each response is also
// checked as a response to its request: see checkEnvelope.
func TestWire(t *testing.T) {
	script.Run(t, "testdata/wire/*.txt", func(t *testing.T) func([]string) ([]string, error) {
		s := listen(t, server.Config{Debug: true})
		now, count := int64(0), 0
		send := func(kind, text, corrID string) []string {
			response, body := exchange(t, "POST", s.URL(), text, http.Header{"Content-Type": {"application/json"}})
			status, data := checkEnvelope(t, response, body, kind, corrID)
			return []string{fmt.Sprintf("%d %s", status, data)}
		}
		send("debug.start", envelope("debug.start", "0", `,"resonate:debug_time":0`, `{}`), "0") // no timeouts of their own
		return func(words []string) (output []string, err error) {
			text := strings.Join(words[1:], " ")
			switch words[0] {
			case "at":
				now, err = strconv.ParseInt(text, 10, 64)
				return nil, err
			case "text":
				kind, corrID := readable(text)
				return send(kind, text, corrID), nil
			}
			count++
			corrID := "c" + strconv.Itoa(count)
			return send(words[0], envelope(words[0], corrID, fmt.Sprintf(`,"resonate:debug_time":%d`, now), text), corrID), nil
		}
	})
}

func envelope(kind, corrID, more, data string) string {
	return `{"kind":"` + kind + `","head":{"corrId":"` + corrID + `","version":"2026-04-01"` + more + `},"data":` + data + `}`
}

// readable returns the kind and the corrId of a text, if encoding/json can read them.
func readable(text string) (kind, corrID string) {
	var r struct {
		Kind any
		Head struct {
			CorrID any `json:"corrId"`
		}
	}
	json.Unmarshal([]byte(text), &r)
	kind, _ = r.Kind.(string)
	corrID, _ = r.Head.CorrID.(string)
	return kind, corrID
}

// checkEnvelope checks row S1: the kind and the corrId are those of the request, the
// status of HTTP is that of the head, the content is JSON, and the data of a refusal is a
// string. It returns the status and the data.
func checkEnvelope(t testing.TB, response *http.Response, body, kind, corrID string) (int, string) {
	t.Helper()
	var r struct {
		Kind string
		Head struct {
			CorrID  string `json:"corrId"`
			Status  int
			Version string
		}
		Data json.RawMessage
	}
	if err := json.Unmarshal([]byte(body), &r); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	if got := response.Header.Get("Content-Type"); got != "application/json" {
		t.Errorf("the Content-Type is %q", got)
	}
	if r.Kind != kind || r.Head.CorrID != corrID || r.Head.Version != "2026-04-01" || r.Head.Status != response.StatusCode {
		t.Errorf("HTTP status %d, want kind %q and corrId %q: %s", response.StatusCode, kind, corrID, body)
	}
	if text := r.Data[0] == '"'; text == (r.Head.Status < 400) {
		t.Errorf("the data does not fit the status: %s", body)
	}
	return r.Head.Status, string(r.Data)
}

// SPDX-License-Identifier: Apache-2.0

package bed

import (
	"bytes"
	"context"
	"encoding/binary"
	"net/http"
	"strings"
	"time"

	"weft.dev/weft/tests/cluster/bed/fakeapi"
)

// spoiler is an answer on its way to the client, and what a fault does to it.
type spoiler struct {
	http.ResponseWriter
	fault Fault
	watch bool

	begun  bool
	binary bool         // a watch in protobuf
	held   bytes.Buffer // an answer that will break off
	rest   []byte       // of a watch: the beginning of a frame
	frames [][]byte     // of a watch: what went through
}

// rewindPause leaves the client time to act on each old event.
const rewindPause = 120 * time.Millisecond

func (s *spoiler) hit() {
	if s.fault.Hit != nil {
		s.fault.Hit()
		s.fault.Hit = nil
	}
}

// WriteHeader comes when the server has done what was asked.
func (s *spoiler) WriteHeader(status int) {
	if s.begun {
		return
	}
	s.begun = true
	if s.fault.After != nil {
		s.fault.After()
	}
	if s.fault.Lose {
		panic(http.ErrAbortHandler)
	}
	contentType := s.Header().Get("Content-Type")
	s.binary = strings.HasPrefix(contentType, "application/vnd.kubernetes.protobuf")
	s.watch = s.watch && status == http.StatusOK
	s.ResponseWriter.WriteHeader(status)
	if s.watch && s.fault.Gone {
		s.hit()
		_, _ = s.ResponseWriter.Write(fakeapi.ErrorFrame(s.binary, fakeapi.Gone()))
		s.Flush()
		panic(http.ErrAbortHandler)
	}
}

// Flush passes on what there is.
func (s *spoiler) Flush() { _ = http.NewResponseController(s.ResponseWriter).Flush() }

func (s *spoiler) Write(piece []byte) (int, error) {
	if !s.begun {
		s.WriteHeader(http.StatusOK)
	}
	switch {
	case s.watch && s.fault.Silent:
		s.hit()
		return len(piece), nil
	case s.watch && (s.fault.Half || s.fault.Rewind):
		s.split(piece)
		return len(piece), nil
	case s.fault.Half:
		return s.held.Write(piece)
	}
	return s.ResponseWriter.Write(piece)
}

// split takes the frames out of a watch's bytes.
func (s *spoiler) split(piece []byte) {
	s.rest = append(s.rest, piece...)
	for {
		length := bytes.IndexByte(s.rest, '\n') + 1
		if s.binary {
			if length = 0; len(s.rest) >= 4 {
				length = 4 + int(binary.BigEndian.Uint32(s.rest))
			}
		}
		if length == 0 || length > len(s.rest) {
			return
		}
		s.frame(bytes.Clone(s.rest[:length]))
		s.rest = s.rest[length:]
	}
}

// frame passes one event of a watch on.
func (s *spoiler) frame(frame []byte) {
	if s.fault.Half && len(s.frames) > 0 {
		s.hit()
		_, _ = s.ResponseWriter.Write(frame[:len(frame)/2])
		s.Flush()
		panic(http.ErrAbortHandler)
	}
	s.frames = append(s.frames, frame)
	_, _ = s.ResponseWriter.Write(frame)
	s.Flush()
	last := len(s.frames)
	if !s.fault.Rewind || last < 2 {
		return
	}
	s.hit()
	for _, old := range s.frames[max(0, last-4):] { // up to now: the client must not end at an older version
		time.Sleep(rewindPause)
		_, _ = s.ResponseWriter.Write(old)
		s.Flush()
	}
}

// end is called when the server's answer is complete.
func (s *spoiler) end(ctx context.Context) {
	if s.watch && s.fault.Silent {
		<-ctx.Done()
		panic(http.ErrAbortHandler)
	}
	if s.fault.Half && !s.watch {
		s.hit()
		_, _ = s.ResponseWriter.Write(s.held.Bytes()[:s.held.Len()/2])
		s.Flush()
		panic(http.ErrAbortHandler)
	}
}

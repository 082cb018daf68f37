package audit

import (
	"encoding/json"
	"slices"
	"time"

	kjson "sigs.k8s.io/json"
)

// Metadata is what is read of a body that is an object, or a patch of one. A body that is something else gives an empty one.
type Metadata struct {
	Name              string            `json:"name"`
	UID               string            `json:"uid"`
	Generation        int64             `json:"generation"`
	Labels            map[string]string `json:"labels"`
	Annotations       map[string]string `json:"annotations"`
	DeletionTimestamp *time.Time        `json:"deletionTimestamp"`
	Finalizers        []string          `json:"finalizers"`
}

// Bodies are what of a request and its answer stands in an entry of the levels Request and RequestResponse.
type Bodies struct {
	// Request is the object or the merge patch that was sent.
	Request Metadata
	// Precondition is the UID under which a deletion was asked for.
	Precondition string
	// DryRun tells that the options of a deletion say so.
	DryRun bool
	// Response is the object that was answered; nil where none was, or the level keeps it out.
	Response *Metadata
	// Items are the objects of an answer that is a list.
	Items []Metadata
}

// ParseBodies reads the bodies of an entry that Parse has read. What has another form is left out: it is the requester's own. A patch is
// logged as it was sent, so it is read as the API server reads it: a field "Metadata" is none of an object's, and what is an option of a
// deletion says nothing in a patch. Whoever sends it could else have a change told as something that it was not.
func ParseBodies(line []byte) Bodies {
	var raw struct {
		Verb     string          `json:"verb"`
		Request  json.RawMessage `json:"requestObject"`
		Response json.RawMessage `json:"responseObject"`
	}
	var bodies Bodies
	// Errors are of bodies that are no objects, such as a JSON patch.
	_ = kjson.UnmarshalCaseSensitivePreserveInts(line, &raw)
	var request struct {
		Metadata      Metadata `json:"metadata"`
		Preconditions struct {
			UID string `json:"uid"`
		} `json:"preconditions"`
		DryRun []string `json:"dryRun"`
	}
	if kjson.UnmarshalCaseSensitivePreserveInts(raw.Request, &request) == nil {
		if slices.Contains([]string{"delete", "deletecollection"}, raw.Verb) {
			bodies.Precondition, bodies.DryRun = request.Preconditions.UID, len(request.DryRun) > 0
		} else {
			bodies.Request = request.Metadata
		}
	}
	var response struct {
		Kind     string   `json:"kind"`
		Metadata Metadata `json:"metadata"`
		Items    []struct {
			Metadata Metadata `json:"metadata"`
		} `json:"items"`
	}
	if kjson.UnmarshalCaseSensitivePreserveInts(raw.Response, &response) != nil {
		return bodies
	}
	for _, item := range response.Items {
		bodies.Items = append(bodies.Items, item.Metadata)
	}
	if response.Kind != "Status" && response.Metadata.UID != "" {
		bodies.Response = &response.Metadata
	}
	return bodies
}

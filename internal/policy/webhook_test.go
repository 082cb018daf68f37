package policy

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// post sends a review to the handler as kube-apiserver does and gives the response in it.
func post(t *testing.T, handler admission.Handler, request admission.Request) *admissionv1.AdmissionResponse {
	t.Helper()
	body, err := json.Marshal(admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"}, Request: &request.AdmissionRequest,
	})
	if err != nil {
		t.Fatal(err)
	}
	return postBody(t, handler, body)
}

func postBody(t *testing.T, handler admission.Handler, body []byte) *admissionv1.AdmissionResponse {
	t.Helper()
	request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, ValidatePath, bytes.NewReader(body))
	request.Header.Set("Content-Type", "application/json")
	recorder := httptest.NewRecorder()
	(&admission.Webhook{Handler: handler}).ServeHTTP(recorder, request)
	var review admissionv1.AdmissionReview
	if err := json.Unmarshal(recorder.Body.Bytes(), &review); err != nil {
		t.Fatalf("the answer is no AdmissionReview: %v\n%s", err, recorder.Body)
	}
	return review.Response
}

func TestAPanicIsOneDeniedRequest(t *testing.T) {
	v := newValidator(nil)
	v.Places = nil
	response := post(t, v, create(prodBackend, stamped("prod")))
	if response.Allowed || response.Result.Code != http.StatusInternalServerError || response.UID != "1" {
		t.Errorf("response = %+v, want a denial with status 500", response)
	}
	if response := post(t, v, remove(prodBackend, stamped("prod"))); !response.Allowed {
		t.Errorf("the request after the panic: %+v", response)
	}
}

func TestAnOverlargeBodyIsRefused(t *testing.T) {
	response := postBody(t, newValidator(roomy()), bytes.Repeat([]byte(" "), 8<<20))
	if response.Allowed || response.Result.Code != http.StatusRequestEntityTooLarge {
		t.Errorf("response = %+v, want a refusal with status 413", response)
	}
}

func TestWhatIsNoReviewIsRefused(t *testing.T) {
	for _, body := range []string{"x", "{}", `{"apiVersion":"v1","kind":"Pod"}`, `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}`} {
		if response := postBody(t, newValidator(roomy()), []byte(body)); response.Allowed {
			t.Errorf("%s was allowed", body)
		}
	}
}

func TestADenialMakesAnEventAndADryRunNone(t *testing.T) {
	v := newValidator(roomy())
	events := make(chan string, 2)
	v.Events = &record.FakeRecorder{Events: events}
	request := create(devBackend, stamped("prod"))
	v.Handle(t.Context(), request)
	request.DryRun = new(true)
	v.Handle(t.Context(), request)
	close(events)
	var heard []string
	for event := range events {
		heard = append(heard, event)
	}
	if len(heard) != 1 || !strings.HasPrefix(heard[0], "Warning EnvironmentMismatch CREATE of lab-a0000000 denied to "+devBackend) {
		t.Errorf("events = %q, want one", heard)
	}
}

import ControlAPI
import ControlClient
import Testing

@Suite("Messages of problems")
struct ControlFailureTests {
    private static func problem(
        _ status: Int, _ code: String = "x", _ detail: String = "It is so.", errors: [ProblemField]? = nil,
        retryable: Bool = false
    ) -> Problem {
        Problem {
            ($0.title, $0.status, $0.code, $0.detail) = ("Title", status, code, detail)
            ($0.retryable, $0.errors) = (retryable, errors)
        }
    }

    @Test func titleDetailAndPlacesAreInOneLine() {
        let fields = [
            ProblemField { ($0.pointer, $0.detail) = ("/url", "It is so.") },
            ProblemField { ($0.parameter, $0.detail) = ("limit", "too large.") },
        ]
        let failure = ControlFailure(Self.problem(422, errors: fields))
        #expect(failure.line == "Title: It is so (at /url, at limit: too large)")
        #expect(failure.kind == .invalidRequest)
    }

    @Test(
        arguments: [
            (400, .invalidRequest), (401, .notAllowed), (403, .notAllowed), (404, .notFound), (405, .invalidRequest),
            (409, .conflict), (410, .notFound), (412, .conflict), (413, .unsendableInput), (415, .unsendableInput),
            (421, .notAllowed),
            (422, .invalidRequest), (428, .conflict), (429, .unavailable), (500, .internalError), (502, .peer),
            (503, .unavailable),
            (504, .unavailable), (599, .internalError),
        ] as [(Int, ControlFailure.Kind)])
    func everyStatusHasAKind(_ status: Int, _ kind: ControlFailure.Kind) {
        #expect(ControlFailure(Self.problem(status)).kind == kind)
    }

    @Test func invalidConfigurationHasItsOwnKind() {
        #expect(ControlFailure(Self.problem(422, "invalid-configuration")).kind == .invalidConfiguration)
    }

    @Test func failureNamesItsRemedy() {
        #expect(ControlFailure(Self.problem(401)).remedy.contains("SLUICE_TOKEN"))
        #expect(ControlFailure(Self.problem(404, "unknown-connection")).remedy.contains("sluice ls"))
        #expect(ControlFailure(Self.problem(404, "other")).remedy.isEmpty)
        #expect(ControlFailure(Self.problem(503, retryable: true), retryAfter: "30").remedy == "try again in 30 s")
        #expect(ControlFailure(Self.problem(502, retryable: true)).remedy.contains("again"))
        var closed = Self.problem(410)
        closed.connection = Connection { $0.id = "17" }
        #expect(ControlFailure(closed).remedy == "'sluice show 17' shows the reason")
    }
}

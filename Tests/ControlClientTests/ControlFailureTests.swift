import ControlAPI
import ControlClient
import Testing

@Suite("What a problem says to people")
struct ControlFailureTests {
    private static func problem(
        _ status: Int, _ code: String = "x", _ detail: String = "It is so.", errors: [ProblemField]? = nil,
        retryable: Bool = false
    ) -> Problem {
        Problem(title: "Title", status: status, code: code, detail: detail, retryable: retryable, errors: errors)
    }

    @Test func titleDetailAndPlacesAreInOneLine() {
        let fields = [
            ProblemField(pointer: "/url", detail: "It is so."),
            ProblemField(parameter: "limit", detail: "too large."),
        ]
        let failure = ControlFailure(Self.problem(422, errors: fields))
        #expect(failure.line == "Title: It is so (at /url, at limit: too large)")
        #expect(failure.kind == .wrongRequest)
    }

    @Test(
        arguments: [
            (400, .wrongRequest), (401, .notAllowed), (403, .notAllowed), (404, .unknown), (405, .wrongRequest),
            (409, .conflict), (410, .unknown), (412, .conflict), (413, .unsendableInput), (415, .unsendableInput),
            (421, .notAllowed),
            (422, .wrongRequest), (428, .conflict), (429, .later), (500, .fault), (502, .peer), (503, .later),
            (504, .later), (599, .fault),
        ] as [(Int, ControlFailure.Kind)])
    func everyStatusHasAKind(_ status: Int, _ kind: ControlFailure.Kind) {
        #expect(ControlFailure(Self.problem(status)).kind == kind)
    }

    @Test func aConfigurationThatIsNotRightIsAKindOfItsOwn() {
        #expect(ControlFailure(Self.problem(422, "invalid-configuration")).kind == .wrongConfiguration)
    }

    @Test func theNextThingToTryIsTold() {
        #expect(ControlFailure(Self.problem(401)).remedy.contains("SLUICE_TOKEN"))
        #expect(ControlFailure(Self.problem(404, "unknown-connection")).remedy.contains("sluice ls"))
        #expect(ControlFailure(Self.problem(404, "other")).remedy.isEmpty)
        #expect(ControlFailure(Self.problem(503, retryable: true), retryAfter: "30").remedy == "try again in 30 s")
        #expect(ControlFailure(Self.problem(502, retryable: true)).remedy.contains("again"))
        var closed = Self.problem(410)
        closed.connection = Connection(id: "17")
        #expect(ControlFailure(closed).remedy == "'sluice show 17' tells how it ended")
    }
}

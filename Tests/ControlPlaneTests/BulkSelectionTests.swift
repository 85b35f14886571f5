import ControlAPI
import ControlPlane
import GatewayCore
import Testing

@Suite("Bulk verbs")
struct BulkSelectionTests {
    private func selection(_ body: String) throws -> BulkSelection {
        try BulkSelection(JSONBody.decode(BulkRequest.self, from: Array(body.utf8)), defaultCode: 1001)
    }

    @Test(arguments: [
        "{}", #"{"selector":{}}"#, #"{"selector":{},"all":false}"#, #"{"selector":{"nope":"x"}}"#,
        #"{"selector":{"kind":"x"}}"#, #"{"selector":{"state":"closed"}}"#, #"{"selector":{"state":"any"}}"#,
        #"{"all":true,"code":1005}"#, #"{"all":true,"code":70000}"#, #"{"all":true,"code":-1}"#,
        #"{"all":true,"every":true}"#, #"{"selector":{"minAgeMs":-1}}"#, #"{"selector":{"route":{"a":"b"}}}"#,
    ])
    func incompleteOrInvalidBulkRequestIsRefused(_ body: String) {
        #expect(throws: ControlProblem.self) { try self.selection(body) }
    }

    @Test func longReasonIsRejected() throws {
        let reason = String(repeating: "x", count: 123)
        #expect(try self.selection(#"{"all":true,"reason":"\#(reason)"}"#).signal.reason.count == 123)
        #expect(throws: ControlProblem.self) { try self.selection(#"{"all":true,"reason":"\#(reason)x"}"#) }
    }

    @Test func bulkRequestIsRead() throws {
        let selection = try self.selection(
            #"{"selector":{"label":"team:blue","kind":"stream,webSocket"},"code":4001,"preview":true}"#)
        #expect(selection.filter.labels == [ConnectionFilter.Label(name: "team", value: "blue")])
        #expect(selection.filter.kinds == [.stream, .webSocket])
        #expect(selection.signal == CloseSignal(code: 4001))
        #expect(selection.isPreview)
        #expect(!selection.isAbort)
    }

    @Test func selectorAcceptsTypedJSONValues() throws {
        let selection = try self.selection(
            #"{"selector":{"minAgeMs":60000,"minIdleMs":1.5,"stalled":true,"route":["a","b"],"labels":{"team":"blue"}}}"#
        )
        #expect(selection.filter.minimumAge == .seconds(60))
        #expect(selection.filter.minimumIdle == .microseconds(1500))
        #expect(selection.filter.isStalled == true)
        #expect(selection.filter.routes == ["a", "b"])
        #expect(selection.filter.labels == [ConnectionFilter.Label(name: "team", value: "blue")])
    }

    @Test(arguments: [
        (#"{"selector":{"kind":"x"}}"#, "/selector/kind"), (#"{"selector":{"nope":1}}"#, "/selector/nope"),
        (#"{"selector":{"route":[{}]}}"#, "/selector/route"), (#"{"selector":{"stalled":1}}"#, "/selector/stalled"),
        (#"{"selector":{"listener":"","kind":"webSocket"}}"#, "/selector/listener"),
        (#"{"selector":{"kind":"webSocket","id":[]}}"#, "/selector/id"),
        (#"{"selector":{"kind":"webSocket","route":["a",""]}}"#, "/selector/route"),
        (#"{"selector":{"kind":"webSocket","label":""}}"#, "/selector/label"),
    ])
    func selectorErrorHasItsPointer(_ body: String, _ pointer: String) {
        let problem = #expect(throws: ControlProblem.self) { try self.selection(body) }
        #expect(problem?.status == 422)
        #expect(problem?.errors.first?.pointer == pointer)
    }

    @Test func selectingEveryConnectionNeedsAll() throws {
        #expect(try self.selection(#"{"all":true}"#).signal == CloseSignal(code: 1001))
    }
}

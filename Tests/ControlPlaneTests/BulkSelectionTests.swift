import ControlAPI
import ControlPlane
import GatewayCore
import Testing

@Suite("Bulk verbs")
struct BulkSelectionTests {
    private func order(_ body: String) throws -> BulkSelection {
        try BulkSelection(JSONBody.decode(BulkRequest.self, from: Array(body.utf8)), defaultCode: 1001)
    }

    @Test(arguments: [
        "{}", #"{"selector":{}}"#, #"{"selector":{},"all":false}"#, #"{"selector":{"nope":"x"}}"#,
        #"{"selector":{"kind":"x"}}"#, #"{"selector":{"state":"closed"}}"#, #"{"selector":{"state":"any"}}"#,
        #"{"all":true,"code":1005}"#, #"{"all":true,"code":70000}"#, #"{"all":true,"code":-1}"#,
        #"{"all":true,"every":true}"#, #"{"selector":{"minAgeMs":-1}}"#, #"{"selector":{"route":{"a":"b"}}}"#,
    ])
    func incompleteOrInvalidBulkRequestIsRefused(_ body: String) {
        #expect(throws: ControlProblem.self) { try self.order(body) }
    }

    @Test func longReasonIsRejected() throws {
        let reason = String(repeating: "x", count: 123)
        #expect(try self.order(#"{"all":true,"reason":"\#(reason)"}"#).signal.reason.count == 123)
        #expect(throws: ControlProblem.self) { try self.order(#"{"all":true,"reason":"\#(reason)x"}"#) }
    }

    @Test func bulkRequestIsRead() throws {
        let order = try self.order(
            #"{"selector":{"label":"team:blue","kind":"stream,webSocket"},"code":4001,"preview":true}"#)
        #expect(order.filter.labels == [ConnectionFilter.Label(name: "team", value: "blue")])
        #expect(order.filter.kinds == [.stream, .webSocket])
        #expect(order.signal == CloseSignal(code: 4001))
        #expect(order.isPreview)
        #expect(!order.isAbort)
    }

    @Test func selectorAcceptsTypedJSONValues() throws {
        let order = try self.order(
            #"{"selector":{"minAgeMs":60000,"minIdleMs":1.5,"stalled":true,"route":["a","b"],"labels":{"team":"blue"}}}"#
        )
        #expect(order.filter.minimumAge == .seconds(60))
        #expect(order.filter.minimumIdle == .microseconds(1500))
        #expect(order.filter.isStalled == true)
        #expect(order.filter.routes == ["a", "b"])
        #expect(order.filter.labels == [ConnectionFilter.Label(name: "team", value: "blue")])
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
        let problem = #expect(throws: ControlProblem.self) { try self.order(body) }
        #expect(problem?.status == 422)
        #expect(problem?.errors.first?.pointer == pointer)
    }

    @Test func selectingEveryConnectionNeedsAll() throws {
        #expect(try self.order(#"{"all":true}"#).signal == CloseSignal(code: 1001))
    }
}

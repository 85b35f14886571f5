import ControlAPI
import ControlPlane
import GatewayCore
import Testing

@Suite("Bulk verbs")
struct BulkOrderTests {
    private func order(_ body: String) throws -> BulkOrder {
        try BulkOrder(JSONBody.decode(BulkRequest.self, from: Array(body.utf8)), standardCode: 1001)
    }

    @Test(arguments: [
        "{}", #"{"selector":{}}"#, #"{"selector":{},"all":false}"#, #"{"selector":{"nope":"x"}}"#,
        #"{"selector":{"kind":"x"}}"#, #"{"selector":{"state":"closed"}}"#, #"{"selector":{"state":"any"}}"#,
        #"{"all":true,"code":1005}"#, #"{"all":true,"code":70000}"#, #"{"all":true,"code":-1}"#,
        #"{"all":true,"every":true}"#,
    ])
    func whatSaysTooLittleOrWrongIsRefused(_ body: String) {
        #expect(throws: ControlProblem.self) { try self.order(body) }
    }

    @Test func aReasonHasABound() throws {
        let reason = String(repeating: "x", count: 123)
        #expect(try self.order(#"{"all":true,"reason":"\#(reason)"}"#).signal.reason.count == 123)
        #expect(throws: ControlProblem.self) { try self.order(#"{"all":true,"reason":"\#(reason)x"}"#) }
    }

    @Test func whatIsMeantIsUnderstood() throws {
        let order = try self.order(
            #"{"selector":{"label":"team:blue","kind":"stream,webSocket"},"code":4001,"preview":true}"#)
        #expect(order.filter.labels == [ConnectionFilter.Label(name: "team", value: "blue")])
        #expect(order.filter.kinds == [.stream, .webSocket])
        #expect(order.signal == CloseSignal(code: 4001))
        #expect(order.isPreview)
        #expect(!order.aborts)
    }

    @Test func everythingMustBeMeant() throws {
        #expect(try self.order(#"{"all":true}"#).signal == CloseSignal(code: 1001))
    }
}

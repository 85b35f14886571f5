import ControlAPI
import ControlClient
import Foundation
import Testing

@Suite("Requests to a control plane")
struct ControlRequestTests {
    @Test func pathSegmentsArePercentEncoded() {
        #expect(ConnectionPath.connection("17u") == "/v1/connections/17u")
        #expect(ConnectionPath.action("send", "1/../2 ü") == "/v1/connections/1%2F..%2F2%20%C3%BC:send")
        #expect(ConnectionPath.connection("..") == "/v1/connections/%2E%2E")
        #expect(ConnectionPath.connection("a?b#c%d:e") == "/v1/connections/a%3Fb%23c%25d%3Ae")
    }

    @Test func parametersAreEncodedAndAppended() {
        let parameters = [ControlRequest.Parameter("label", "team:blue & green"), ControlRequest.Parameter("x", "")]
        #expect(ControlRequest(.get, "/v1/x", parameters).target == "/v1/x?label=team%3Ablue%20%26%20green&x=")
        #expect(ControlRequest(.get, "/v1/x?cursor=a1", [parameters[1]]).target == "/v1/x?cursor=a1&x=")
        #expect(ControlRequest(.get, "/v1/x").target == "/v1/x")
    }

    @Test func jsonBodyOmitsMissingMembers() throws {
        let request = try ControlRequest(
            .post, "/v1/connections", json: OpenRequest { ($0.url, $0.compress) = ("ws://h/ü", true) })
        #expect(request.headers == ["Content-Type": "application/json"])
        #expect(request.body.map { String(decoding: $0, as: UTF8.self) } == #"{"compress":true,"url":"ws://h/ü"}"#)
    }

    @Test(arguments: ["ws", "WS", "websocket", "webSocket"])
    func kindIsGivenAsTheTableShowsIt(_ kind: String) {
        var selection = ConnectionSelection()
        selection.kinds = [kind]
        #expect(selection.parameters.map(\.value) == ["webSocket"])
    }

    @Test func aSelectionIsTheQueryOfTheInterface() {
        var selection = ConnectionSelection()
        #expect(selection.isEmpty && selection.parameters.isEmpty)
        selection.kinds = ["stream", "webSocket"]
        selection.states = ["any"]
        selection.direction = "opened"
        selection.users = ["ada", "a,b"]
        selection.labels = ["team=blue=green", "tier"]
        selection.minimumAge = .seconds(90)
        selection.minimumIdle = .milliseconds(1)
        selection.isStalled = true
        let query = selection.parameters.map { "\($0.name)=\($0.value)" }
        #expect(
            query == [
                "kind=stream", "kind=webSocket", "state=any", "user=ada", "user=a,b", "label=team:blue=green",
                "label=tier",
                "direction=opened",
                "minAgeMs=90000", "minIdleMs=1", "stalled=true",
            ])
    }

    @Test func listingFetchesPagesUpToItsLimit() {
        var listing = ConnectionListing(ConnectionSelection(), sort: "-bytes", fields: "id,url", limit: 1500)
        #expect(listing.request(count: 1500).target == "/v1/connections?sort=-bytes&fields=id%2Curl&limit=1000")
        listing.limit = 3
        #expect(listing.request(count: 3).target.hasSuffix("limit=3"))
        let next = "/v1/connections?sort=-bytes&limit=1000&cursor=k1.1000"
        #expect(
            ConnectionListing.Pages.bounded(next, count: 500) == "/v1/connections?sort=-bytes&limit=500&cursor=k1.1000")
        #expect(ConnectionListing.Pages.bounded(next, count: .max) == next)
        #expect(ConnectionListing.Pages.bounded("/v1/connections", count: 1) == "/v1/connections")
    }

    @Test func labelsAreNamesWithValues() throws {
        #expect(try LabelText.labels(["a=1", "b=", "c=x=y", "a=2"]).get() == ["a": "2", "b": "", "c": "x=y"])
        #expect(throws: LabelText.InvalidLabel(text: "=x")) { try LabelText.labels(["a=1", "=x"]).get() }
        #expect(throws: LabelText.InvalidLabel(text: "name")) { try LabelText.labels(["name"]).get() }
    }
}

import ControlAPI
import ControlPlane
import Testing

@Suite("Paths and queries of the REST interface")
struct RoutingTests {
    private func match(_ template: String, _ path: String) -> [String: String]? {
        let segments = path.dropFirst().split(separator: "/", omittingEmptySubsequences: false)
        return PathTemplate(template).match(segments.map { Substring($0) })
    }

    @Test func aParameterFillsItsSegment() {
        #expect(self.match("/v1/connections/{id}", "/v1/connections/17u") == ["id": "17u"])
        #expect(self.match("/v1/connections/{id}/stream", "/v1/connections/17/stream") == ["id": "17"])
        #expect(self.match("/v1/connections", "/v1/connections") == [:])
    }

    @Test(arguments: [
        "/v1/connections", "/v1/connections/", "/v1/connections/17/", "/v1/other/17", "/v1/connections/17/x",
    ])
    func anotherPathDoesNotMatch(_ path: String) {
        #expect(self.match("/v1/connections/{id}", path) == nil)
    }

    @Test func verbIsNotPartOfTheParameter() {
        #expect(self.match("/v1/connections/{id}:send", "/v1/connections/17:send") == ["id": "17"])
        #expect(self.match("/v1/connections/{id}", "/v1/connections/17:send") == nil)
        #expect(self.match("/v1/connections/{id}:send", "/v1/connections/:send") == nil)
        #expect(self.match("/v1/connections/{id}:send", "/v1/connections/17:ping") == nil)
    }

    @Test func parametersAreDecoded() {
        #expect(self.match("/v1/routes/{name}", "/v1/routes/a%20b%2Fc") == ["name": "a b/c"])
        #expect(self.match("/v1/routes/{name}", "/v1/routes/a%2") == nil)
        #expect(self.match("/v1/routes/{name}", "/v1/routes/%FF") == nil)
    }

    @Test func aQueryKeepsOrderAndRepetition() throws {
        let query = try Query("label=a%3Ab&label=c&state=open,closed&text=a+b&flag=true&bare")
        #expect(query.values("label") == ["a:b", "c"])
        #expect(query.list("state") == ["open", "closed"])
        #expect(try query.value("text") == "a b")
        #expect(try query.boolean("flag") == true)
        #expect(throws: ControlProblem.self) { try query.boolean("bare") }
        #expect(try query.value("none") == nil)
    }

    @Test(arguments: ["a=%", "a=%4", "a=%zz", "%FF=1"])
    func aMalformedQueryIsRefused(_ text: String) {
        #expect(throws: ControlProblem.self) { try Query(text) }
    }

    @Test func aQueryHasABound() {
        #expect(throws: ControlProblem.self) { try Query(Array(repeating: "a=1", count: 65).joined(separator: "&")) }
    }

    @Test(arguments: ["limit=0", "limit=1001", "limit=x", "limit=1&limit=2", "limit=", "limit=99999999999999999999"])
    func aNumberOutOfItsRangeIsRefused(_ text: String) throws {
        let query = try Query(text)
        let problem = #expect(throws: ControlProblem.self) { try query.integer("limit", in: 1...1000) }
        #expect(problem?.status == 400)
        #expect(problem?.errors.first?.parameter == "limit")
    }
}

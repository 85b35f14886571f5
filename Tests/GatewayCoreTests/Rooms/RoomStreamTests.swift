import Testing

@Suite("Rooms by plain HTTP for pages of other origins")
struct RoomStreamTests {
    private static let refusals: [(request: String, fields: String, status: Int)] = [
        ("PUT", "", 405),
        ("POST", "Content-Length: 300000\r\n", 413),
        ("POST", "Content-Length: 300000\r\nExpect: 100-continue\r\n", 413),
        ("POST", "Transfer-Encoding: chunked\r\n\r\n493e0\r\n", 413),
        ("POST", "Content-Length: 1\r\n\r\n[", 400),
    ]

    @Test(arguments: refusals)
    func refusalsCanBeReadWhereTheOriginIsAllowed(_ refusal: (request: String, fields: String, status: Int)) throws {
        let scene = try GatewayScene(
            """
            listeners: [{name: web, listen: "ws://10.1.0.1:1001"}]
            routes: [{name: events, path: /events, target: room-events, origins: ["https://a.example"]}]
            """)
        let response = try scene.fetch(
            "/events", "Origin: https://a.example\r\n\(refusal.fields)", method: refusal.request)
        #expect(response.status == refusal.status)
        #expect(response["Access-Control-Allow-Origin"] == "https://a.example" && response["Vary"] == "Origin")
        scene.finish()
    }
}

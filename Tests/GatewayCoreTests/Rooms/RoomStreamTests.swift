import TestSupport
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

    @Test(arguments: [("GET", "?cf_connect=%7B%22token%22:%22x%22%7D", ""), ("POST", "", #"{"token":"x"}"#)])
    func streamThatEndsAtOnceSaysThatTheConnectionCloses(
        _ request: (method: String, query: String, body: String)
    ) throws {
        let scene = try GatewayScene(
            """
            listeners: [{name: web, listen: "ws://10.1.0.1:1001"}]
            routes: [{name: events, path: /events, target: room-events}]
            """)
        let client = try scene.client(1001)
        let length = request.body.isEmpty ? "" : "Content-Length: \(request.body.utf8.count)\r\n"
        let head = "\(request.method) /events\(request.query) HTTP/1.1\r\nHost: a.example\r\n\(length)\r\n"
        client.send(Array((head + request.body).utf8))
        #expect(scene.run { client.sawEnd })
        let answer = String(decoding: client.takeReceived(), as: UTF8.self)
        #expect(answer.contains("\r\nConnection: close\r\n") && answer.contains("3500"), "\(answer)")
        scene.finish()
    }
}

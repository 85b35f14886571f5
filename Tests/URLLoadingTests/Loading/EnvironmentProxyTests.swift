import Foundation
import Testing
import URLLoading

@Suite("Proxies of the environment", .loading, .choosesItsConnections, .timeLimit(.minutes(20)))
struct EnvironmentProxyTests {
    enum Load: CaseIterable { case data, upload, webSocket, stream }

    /// Uses a server of its own.
    private func run(_ load: Load, in session: URLSession) async throws {
        let server = try await WebServer()
        server.on("/") { .text("got \($0.bodyCount)") }
        switch load {
        case .data: #expect(try await session.load(server.url()).text == "got 0")
        case .upload:
            let (data, _) = try await session.upload(for: .to(server.url(), "PUT"), from: Data("body".utf8))
            #expect(data == Data("got 4".utf8))
        case .webSocket:
            let server = try await ConnectionServer(WebSocketTaskTests.echo)
            let task = session.webSocketTask(with: server.url())
            task.resume()
            try await task.sendPing()
        case .stream:
            let task = session.streamTask(withHostName: "127.0.0.1", port: server.port)
            task.resume()
            try await task.write(Data("GET / HTTP/1.1\r\nHost: x\r\n\r\n".utf8), timeout: 60)
            let (data, _) = try await task.readData(ofMinLength: 30, maxLength: 10_000, timeout: 60)
            #expect(data?.starts(with: Data("HTTP/1.1 200".utf8)) == true)
        }
    }

    @Test(arguments: Load.allCases, ["http", "socks", "socks4", "socks4a", "socks5", "socks5h"])
    func everyKindOfTaskUsesThem(_ load: Load, _ scheme: String) async throws {
        let proxy = try await RelayProxy()
        let session = URLSession.test {
            $0.connectionProxyDictionary = nil
            $0.proxyVariables = ["all_proxy": "\(scheme)://127.0.0.1:\(proxy.port)"]
        }
        try await self.run(load, in: session)
        #expect(proxy.tunnels == 1)
        session.invalidateAndCancel()
    }
}

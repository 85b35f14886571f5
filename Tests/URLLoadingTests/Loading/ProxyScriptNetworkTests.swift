import Foundation
import StreamTransport
import Synchronization
import Testing
import URLLoading

@Suite("Proxy scripts without a network", .loading, .choosesItsConnections, .timeLimit(.minutes(20)))
struct ProxyScriptNetworkTests {
    /// The script's server has no route for the first lookups.
    private static func session(
        _ server: WebServer, _ recorder: DataRecorder, offlineLookups: Int, waits: Bool
    ) -> URLSession {
        let lookups = Atomic(0)
        let place = SocketAddress.ipv4(address: 0x7F00_0001, port: UInt16(clamping: server.port))
        return URLSession.test(recorder) {
            $0.waitsForConnectivity = waits
            $0.connectionProxyDictionary = [
                "ProxyAutoConfigEnable": 1, "ProxyAutoConfigURLString": "http://script.test:\(server.port)/proxy.pac",
            ]
            $0.resolve = { _, _, answer in
                let isOffline = lookups.add(1, ordering: .relaxed).oldValue < offlineLookups
                answer(isOffline ? .failure(.noRoute) : .success([place]))
            }
        }
    }

    @Test func offlineScriptIsNotConnectedToTheInternet() async throws {
        let server = try await WebServer()
        let recorder = DataRecorder()
        let session = Self.session(server, recorder, offlineLookups: .max, waits: false)
        session.dataTask(with: server.url()).resume()
        let error = try await recorder.end().error as? URLError
        #expect(error?.code == .notConnectedToInternet && error?.localizedDescription.contains("proxy script") == true)
        session.invalidateAndCancel()
    }

    /// What changed before the kernel's notifications began may have been missed: the first repetition needs no change.
    @Test(.onlyWithHTTP11) func taskWaitsForItsProxyScript() async throws {
        let server = try await WebServer([
            "/proxy.pac": .text("function FindProxyForURL(url, host) { return 'DIRECT' }"), "/": .text("hello"),
        ])
        let recorder = DataRecorder()
        let session = Self.session(server, recorder, offlineLookups: 1, waits: true)
        session.dataTask(with: server.url()).resume()
        let notes = try await recorder.end()
        #expect(notes.data == Data("hello".utf8) && notes.error == nil)
        #expect(server.requests.map(\.path) == ["/proxy.pac", "/"])
        session.invalidateAndCancel()
    }

    @Test(.onlyWithHTTP11, arguments: [(31, true), (32, false), (100_000, false)])
    func firstRoutesOfAnAnswerAreTried(_ proxies: Int, _ isLoaded: Bool) async throws {
        let script = """
            function FindProxyForURL(url, host) {
              var text = '';
              for (var index = 0; index < \(proxies); index++) { text += 'PROXY 127.0.0.1:1;'; }
              return text + 'DIRECT';
            }
            """
        let server = try await WebServer(["/proxy.pac": .text(script), "/": .text("hello")])
        let recorder = DataRecorder()
        let session = Self.session(server, recorder, offlineLookups: 0, waits: false)
        session.dataTask(with: server.url()).resume()
        let notes = try await recorder.end()
        #expect((notes.data == Data("hello".utf8)) == isLoaded && (notes.error == nil) == isLoaded)
        session.invalidateAndCancel()
    }

    private static let direct = Answer.text("function FindProxyForURL(url, host) { return 'DIRECT' }")

    @Test(.onlyWithHTTP11) func streamTaskWaitsForItsProxyScript() async throws {
        let server = try await WebServer(["/proxy.pac": Self.direct, "/": .text("hello")])
        let session = Self.session(server, DataRecorder(), offlineLookups: 1, waits: true)
        let task = session.streamTask(withHostName: "127.0.0.1", port: server.port)
        task.resume()
        try await task.write(Data("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n".utf8), timeout: 240)
        let (data, _) = try await task.readData(ofMinLength: 12, maxLength: 4096, timeout: 240)
        #expect(data?.starts(with: "HTTP/1.1 200".utf8) == true)
        session.invalidateAndCancel()
    }

    @Test(.onlyWithHTTP11) func webSocketTaskWaitsForItsProxyScript() async throws {
        let server = try await WebServer(["/proxy.pac": Self.direct, "/socket": .text("no")])
        let recorder = DataRecorder()
        let session = Self.session(server, recorder, offlineLookups: 1, waits: true)
        session.webSocketTask(with: try #require(URL(string: "ws://127.0.0.1:\(server.port)/socket"))).resume()
        #expect((try await recorder.end().error as? URLError)?.code == .badServerResponse)
        #expect(server.requests.map(\.path) == ["/proxy.pac", "/socket"])
        session.invalidateAndCancel()
    }
}

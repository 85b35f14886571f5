import Foundation
import Testing
import URLLoading

#if canImport(Glibc)
    import Glibc
#endif

@Suite(
    "Multipath TCP, RFC 8684", .loading, .onlyDirect("a proxy decides on the transport to the server"),
    .onlyPlain("streams without TLS reach the server"), .timeLimit(.minutes(20)))
struct MultipathTests {
    /// IPPROTO_MPTCP.
    private static let multipath: Int32 = 262

    /// Whether the kernel has Multipath TCP, switched on.
    private static var isAvailable: Bool {
        let probe = socket(AF_INET, Int32(SOCK_STREAM.rawValue), self.multipath)
        guard probe >= 0 else { return false }
        close(probe)
        return true
    }

    /// A server that answers one request, on a thread of its own.
    private final class Server: Sendable {
        let url: URL
        private let listener: Int32

        init() throws {
            let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), MultipathTests.multipath)
            var address = sockaddr_in()
            address.sin_family = sa_family_t(AF_INET)
            address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
            var length = socklen_t(MemoryLayout<sockaddr_in>.size)
            let isBound = withUnsafeMutablePointer(to: &address) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    bind(listener, $0, length) == 0 && listen(listener, 1) == 0
                        && getsockname(listener, $0, &length) == 0
                }
            }
            try #require(isBound)
            self.listener = listener
            self.url = try #require(URL(string: "http://127.0.0.1:\(UInt16(bigEndian: address.sin_port))/"))
            Thread.detachNewThread {
                let connection = accept(listener, nil, nil)
                var request = [UInt8](repeating: 0, count: 4096)
                _ = recv(connection, &request, request.count, 0)
                let answer = Array("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello".utf8)
                _ = send(connection, answer, answer.count, 0)
                close(connection)
                close(listener)
            }
        }
    }

    private static func load(_ url: URL, _ type: URLSessionConfiguration.MultipathServiceType) async throws
        -> Recorder.Recording
    {
        try await DataRecorder().run(url) {
            $0.multipathServiceType = type
            $0.assumesHTTP2 = false
        }
    }

    @Test(.enabled(if: Self.isAvailable, "the kernel has no Multipath TCP"))
    func multipathIsUsedWhereTheServerHasIt() async throws {
        for type in [URLSessionConfiguration.MultipathServiceType.handover, .interactive, .aggregate, .none] {
            let notes = try await Self.load(Server().url, type)
            #expect(notes.data == Data("hello".utf8))
            #expect(notes.metrics?.transactionMetrics.first?.isMultipath == (type != .none))
        }
    }

    @Test func plainTCPIsUsedWithOtherServers() async throws {
        let server = try await WebServer(["/": .text("hello")])
        let recorder = DataRecorder()
        let notes = try await recorder.run(server.url()) { $0.multipathServiceType = .handover }
        #expect(notes.data == Data("hello".utf8) && notes.metrics?.transactionMetrics.first?.isMultipath == false)
        let session = URLSession.test { $0.multipathServiceType = .handover }
        let stream = session.streamTask(withHostName: "127.0.0.1", port: server.port)
        stream.resume()
        try await stream.write(Data("GET / HTTP/1.1\r\n\r\n".utf8), timeout: 60)
        #expect(try await stream.readData(ofMinLength: 12, maxLength: 12, timeout: 60).0 == Data("HTTP/1.1 200".utf8))
        session.invalidateAndCancel()
    }
}

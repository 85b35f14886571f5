import HTTPTransport
import NIOCore
import NIOPosix
import Synchronization
import TLSEngine
import WireText

/// A server that says exactly what its scripts tell it: the first connection has the first script, and so on. A
/// connection without a script is closed at once; one whose script is over stays open.
final class RawServer: Sendable {
    enum Step: Sendable {
        /// Waits for these bytes, and drops all up to and with them.
        case receive(String)
        case receiveBytes(Int)
        case send(String)
        case sendBytes([UInt8])
        /// FIN; under TLS behind close_notify.
        case finish
        case close
        /// Closes with a reset.
        case reset
        /// Ends the transport below TLS, without close_notify.
        case cut
        /// Waits until the gate is opened.
        case wait(Gate)
        case open(Gate)

        static let request = Step.receive("\r\n\r\n")
    }

    let port: UInt16
    private let channel: any Channel
    private let log: Log

    /// What came on each connection.
    final class Log: Sendable {
        private let bytes = Mutex<[[UInt8]]>([])
        private let ended = Mutex<Set<Int>>([])

        func end(_ index: Int) { _ = self.ended.withLock { $0.insert(index) } }
        func hasEnded(_ index: Int) -> Bool { self.ended.withLock { $0.contains(index) } }

        func begin() -> Int {
            self.bytes.withLock {
                $0.append([])
                return $0.count - 1
            }
        }

        func add(_ more: some Collection<UInt8>, to index: Int) { self.bytes.withLock { $0[index] += more } }
        var all: [[UInt8]] { self.bytes.withLock { $0 } }
    }

    init(_ scripts: [[Step]], tls: TLSContext? = nil) async throws {
        let log = Log()
        self.log = log
        self.channel = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .childChannelOption(.allowRemoteHalfClosure, value: true)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    let index = log.begin()
                    if let tls { try channel.pipeline.syncOperations.addHandler(SecureHandler(tls)) }
                    let script = index < scripts.count ? scripts[index] : [.close]
                    try channel.pipeline.syncOperations.addHandler(
                        ScriptHandler(script, log: log, index: index, waitsForTLS: tls != nil))
                }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        self.port = UInt16(self.channel.localAddress?.port ?? 0)
    }

    deinit {
        self.channel.close(promise: nil)
    }

    /// Connections that came, whole.
    var received: [String] { self.log.all.map { String(decoding: $0, as: UTF8.self) } }
    func isOpen(_ index: Int) -> Bool { !self.log.hasEnded(index) }
    func bytes(_ index: Int) -> [UInt8] { self.log.all[index] }
    var connections: Int { self.log.all.count }

    func order(_ method: String = "GET", _ fields: [(String, String)] = []) -> ExchangeRequest {
        let head = RequestHead(method: method, target: "/", fields: FieldLines(fields.map { FieldLine($0.0, $0.1) }))
        return ExchangeRequest(ServerEndpoint(.http, host: "127.0.0.1", port: self.port), head: head)
    }
}

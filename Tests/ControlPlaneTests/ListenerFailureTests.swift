import GatewayTestSupport
import Glibc
import Testing

@Suite("Failures of the control plane's listener", .timeLimit(.minutes(5)))
struct ListenerFailureTests {
    /// The descriptor that listens on a port of the loopback address.
    private func listener(on port: UInt16) -> Int32? {
        (3..<4096 as Range<Int32>).first { descriptor in
            var address = sockaddr_in()
            var length = socklen_t(MemoryLayout<sockaddr_in>.size)
            let result = unsafe withUnsafeMutablePointer(to: &address) { pointer in
                unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    unsafe getsockname(descriptor, $0, &length)
                }
            }
            var listens: Int32 = 0
            var size = socklen_t(MemoryLayout<Int32>.size)
            guard unsafe getsockopt(descriptor, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) == 0 else { return false }
            return result == 0 && address.sin_port == port.bigEndian && listens == 1
        }
    }

    @Test func listenerIsOpenedAgainAtItsAddress() async throws {
        try await LoopbackGateway.run { gateway in
            let port = try #require(gateway.control.split(separator: ":").last.flatMap { UInt16($0) })
            for turn in 1...2 {
                let descriptor = try #require(self.listener(on: port))
                // Its next accept(2) fails.
                #expect(shutdown(descriptor, Int32(SHUT_RDWR)) == 0)
                try await gateway.wait {
                    gateway.log.count { $0.contains("the control plane listens again") } == turn
                }
                #expect(gateway.log.count { $0.contains("the control plane's listener failed") } == turn)
                #expect(try await gateway.get("/livez").status == 200)
            }
        }
    }
}

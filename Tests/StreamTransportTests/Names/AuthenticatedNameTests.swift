import ByteKernels
import Foundation
import StreamTransport
import Synchronization
import Testing

#if canImport(Glibc)
    import Glibc
#endif

@Suite("Names with DNSSEC, RFC 4035")
struct AuthenticatedNameTests {
    typealias Found = Result<[SocketAddress], ResolutionFailure>

    /// A response of 31 bytes of head and question for a.test, then an A record that points to the question's name.
    private static let answer: [UInt8] =
        [0, 7, 0x81, 0xA0, 0, 1, 0, 1, 0, 0, 0, 0]
        + [1, 0x61, 4, 0x74, 0x65, 0x73, 0x74, 0, 0, 1, 0, 1]
        + [0xC0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 192, 0, 2, 1]

    private static func read(_ bytes: [UInt8]) -> NameAnswer? { bytes.withRawSpan { NameAnswer($0) } }

    @Test func answersAreRead() throws {
        let read = try #require(Self.read(Self.answer))
        #expect(read.isAuthenticated && read.addresses == [.ipv4(address: 0xC000_0201, port: 0)])
        var plain = Self.answer
        plain[3] = 0x80
        #expect(Self.read(plain)?.isAuthenticated == false && Self.read(plain)?.addresses.count == 1)
        // An alias, then an IPv6 address of the alias, and a record of another class.
        var alias = Array(Self.answer[..<24])
        alias[7] = 3
        alias += [0xC0, 12, 0, 5, 0, 1, 0, 0, 0, 60, 0, 4, 1, 0x62, 0xC0, 14]
        alias +=
            [1, 0x62, 0xC0, 14, 0, 28, 0, 1, 0, 0, 0, 60, 0, 16] + [0x20, 1, 0x0D, 0xB8]
            + [UInt8](repeating: 0, count: 11)
        alias += [1] + [0, 0, 1, 0, 3, 0, 0, 0, 60, 0, 4, 10, 0, 0, 1]
        #expect(Self.read(alias)?.addresses == [.ipv6(high: 0x2001_0DB8_0000_0000, low: 1, scope: 0, port: 0)])
    }

    @Test func malformedAnswersAreRefused() {
        for count in 0..<Self.answer.count { #expect(Self.read(Array(Self.answer.prefix(count))) == nil) }
        var question = Self.answer
        question[2] = 0x01
        #expect(Self.read(question) == nil)
        // A label of a reserved kind, more records than there are, and a record longer than the message.
        for (offset, value): (Int, UInt8) in [(12, 0x80), (12, 0x3F), (7, 2), (6, 0xFF), (5, 2), (34, 1), (35, 5)] {
            var bytes = Self.answer
            bytes[offset] = value
            #expect(Self.read(bytes) == nil, "\(value) at \(offset)")
        }
        for offset in 0..<Self.answer.count {
            for value in [0, 1, 0x3F, 0xC0, 0xFF] as [UInt8] {
                var bytes = Self.answer
                bytes[offset] = value
                _ = Self.read(bytes)
            }
        }
    }

    @Test func addressesBeyondTheLimitAreIgnored() {
        var many = Array(Self.answer[..<24])
        (many[6], many[7]) = (0, 200)
        for _ in 0..<200 { many += Self.answer[24...] }
        #expect(Self.read(many)?.addresses.count == NameAnswer.addressLimit)
    }

    // MARK: With a name server

    /// A name server that answers A questions alone, on a thread of its own.
    private final class Server: Sendable {
        let place: SocketAddress
        private let descriptor: Int32

        /// - Parameters:
        ///   - flags: the fourth byte of the answers: AD (0x20) and the code.
        ///   - hasAddress: whether names have an address.
        init(flags: UInt8, hasAddress: Bool = true) throws {
            let descriptor = socket(AF_INET, Int32(SOCK_DGRAM.rawValue), 0)
            var address = sockaddr_in()
            address.sin_family = sa_family_t(AF_INET)
            address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
            var length = socklen_t(MemoryLayout<sockaddr_in>.size)
            let isBound = withUnsafeMutablePointer(to: &address) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    bind(descriptor, $0, length) == 0 && getsockname(descriptor, $0, &length) == 0
                }
            }
            try #require(isBound)
            self.descriptor = descriptor
            self.place = .ipv4(address: 0x7F00_0001, port: UInt16(bigEndian: address.sin_port))
            Thread.detachNewThread { Self.serve(descriptor, flags, hasAddress) }
        }

        func close() { shutdown(self.descriptor, Int32(SHUT_RDWR)) }

        private static func serve(_ descriptor: Int32, _ flags: UInt8, _ hasAddress: Bool) {
            var bytes = [UInt8](repeating: 0, count: 512)
            while true {
                var peer = sockaddr_storage()
                var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
                let count = withUnsafeMutablePointer(to: &peer) { pointer in
                    pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                        recvfrom(descriptor, &bytes, bytes.count, 0, $0, &length)
                    }
                }
                guard count > 12, let end = bytes[12...].firstIndex(of: 0) else { break }
                let question = bytes[12..<(end + 5)]
                // The question is whether the answer is authenticated.
                let wantsAuthenticity = bytes[3] & 0x20 != 0
                let isAddress = question[end + 2] == 1 && hasAddress && flags & 0xF == 0
                var answer = bytes[..<2] + [0x81, 0x80 | flags, 0, 1, 0, isAddress ? 1 : 0, 0, 0, 0, 0] + question
                if !wantsAuthenticity { answer[3] &= ~0x20 }
                if isAddress { answer += AuthenticatedNameTests.answer[24...] }
                withUnsafePointer(to: &peer) { pointer in
                    pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                        _ = sendto(descriptor, Array(answer), answer.count, 0, $0, length)
                    }
                }
            }
            Glibc.close(descriptor)
        }
    }

    private static func lookUp(_ name: String, at server: SocketAddress) async -> Found {
        await withCheckedContinuation { continuation in
            ResolverThreads.shared.lookUpAuthenticated(name, port: 443, server: server) {
                continuation.resume(returning: $0)
            }
        }
    }

    /// RFC 6761 §6.3, whatever the system's resolver knows.
    @Test(arguments: ["a.localhost", "localhost.", "A.LOCALHOST."])
    func nameBelowLocalhostIsThisMachine(_ name: String) async {
        let found = await withCheckedContinuation { continuation in
            if !ResolverThreads.shared.look(up: name, { continuation.resume(returning: $0) }) {
                continuation.resume(returning: [])
            }
        }
        #expect(found == [.ipv4(address: 0x7F00_0001, port: 0), .ipv6(high: 0, low: 1, scope: 0, port: 0)])
    }

    @Test func authenticatedAddressesAreFound() async throws {
        let server = try Server(flags: 0x20)
        #expect(await Self.lookUp("a.test", at: server.place) == .success([.ipv4(address: 0xC000_0201, port: 443)]))
        server.close()
    }

    @Test func anAnswerThatIsNotAuthenticatedIsRefused() async throws {
        let server = try Server(flags: 0)
        guard case .failure(.notAuthenticated) = await Self.lookUp("a.test", at: server.place) else {
            Issue.record("an answer without AD was taken")
            return
        }
        server.close()
    }

    /// NXDOMAIN, and a name without addresses.
    @Test(arguments: [3, 0x20] as [UInt8])
    func aNameWithoutAddressesIsNotFound(_ flags: UInt8) async throws {
        let server = try Server(flags: flags, hasAddress: false)
        #expect(await Self.lookUp("a.test", at: server.place) == .failure(.nameNotFound))
        server.close()
    }

    @Test func localhostIsNotAskedFor() async throws {
        let server = try Server(flags: 3)
        let loopback = [
            SocketAddress.ipv4(address: 0x7F00_0001, port: 443), .ipv6(high: 0, low: 1, scope: 0, port: 443),
        ]
        for name in ["localhost", "a.LOCALHOST"] {
            #expect(await Self.lookUp(name, at: server.place) == .success(loopback))
        }
        server.close()
    }
}

import ByteKernels
import StreamTransport
import Testing

#if _endian(little)
    /// The bytes are as the kernel writes them on a little-endian machine.
    @Suite("Messages about routes, rtnetlink(7)")
    struct RouteMessageTests {
        /// RTM_NEWLINK of interface 2, up, running and with a link (0x11043), with an attribute (IFLA_MTU).
        static let link: [UInt8] = [
            0x28, 0, 0, 0, 0x10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
            0, 0, 1, 0, 2, 0, 0, 0, 0x43, 0x10, 1, 0, 0, 0, 0, 0,
            8, 0, 4, 0, 0xDC, 5, 0, 0,
        ]
        /// RTM_NEWADDR on interface 2, an IPv6 address that is still tentative.
        static let tentative: [UInt8] = [
            0x18, 0, 0, 0, 0x14, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
            10, 64, 0xC0, 0, 2, 0, 0, 0,
        ]
        /// RTM_NEWROUTE for 192.0.2.1 through interface 3 from 198.18.0.1.
        static let route: [UInt8] = [
            0x34, 0, 0, 0, 0x18, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0,
            2, 32, 0, 0, 254, 0, 0, 1, 0, 2, 0, 0,
            8, 0, 1, 0, 192, 0, 2, 1,
            8, 0, 4, 0, 3, 0, 0, 0,
            8, 0, 7, 0, 198, 18, 0, 1,
        ]
        /// RTM_NEWROUTE of a route of the type RTN_UNREACHABLE.
        static let barrier: [UInt8] = [
            0x1C, 0, 0, 0, 0x18, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
            2, 0, 0, 0, 254, 0, 0, 7, 0, 0, 0, 0,
        ]
        /// NLMSG_ERROR with -ENETUNREACH.
        static let refusal: [UInt8] = [
            0x14, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0,
            0x9B, 0xFF, 0xFF, 0xFF,
        ]
        /// NLMSG_OVERRUN.
        static let overrun: [UInt8] = [0x10, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]

        private static func messages(_ bytes: [UInt8]) -> [RouteMessage] {
            bytes.withRawSpan { span in
                var (reader, found) = (RouteMessages(), [RouteMessage]())
                while let message = reader.next(in: span) { found.append(message) }
                return found
            }
        }

        @Test func eachKindIsRead() {
            let source = SocketAddress.ipv4(address: 0xC612_0001, port: 0)
            #expect(
                Self.messages(Self.link + Self.tentative + Self.route + Self.barrier + Self.refusal + Self.overrun) == [
                    .link(interface: 2, flags: 0x11043), .address(interface: 2, isUsable: false),
                    .route(Route(interface: 3, source: source)), .barrier, .failure(101), .overrun,
                ])
            var removed = Self.link
            removed[4] = 0x11
            #expect(Self.messages(removed) == [.linkRemoved(interface: 2)])
            var usable = Self.tentative
            (usable[4], usable[18]) = (0x15, 0x80)
            #expect(Self.messages(usable) == [.address(interface: 2, isUsable: true)])
            var rule = Self.barrier
            rule[4] = 0x20
            #expect(Self.messages(rule) == [.route(nil)])
            rule[4] = 0x77
            #expect(Self.messages(rule) == [.other])
        }

        @Test func cutMessagesAreAnOverrun() {
            let whole = Self.link + Self.route
            for count in 1..<whole.count where count != Self.link.count {
                #expect(Self.messages(Array(whole.prefix(count))).last == .overrun, "\(count) bytes")
            }
        }

        /// Lengths of 0, below a head, beyond the datagram and of any attribute: the reader comes to an end.
        @Test func lengthsThatDoNotFitEndTheDatagram() {
            for length: UInt8 in [0, 1, 15, 0x35, 0xFF] {
                var bytes = Self.route
                bytes[0] = length
                #expect(Self.messages(bytes) == [.overrun])
            }
            for (offset, value) in (16..<Self.route.count).flatMap({ o in [0, 3, 5, 0xFF].map { (o, UInt8($0)) } }) {
                var bytes = Self.route
                bytes[offset] = value
                #expect(Self.messages(bytes).count == 1)
            }
            #expect(Self.messages([0x11, 0, 0, 0, 0x10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]) == [.overrun])
        }

        @Test func aSourceOfTheWrongLengthIsNone() {
            var bytes = Self.route
            bytes[16] = 10
            #expect(Self.messages(bytes) == [.route(Route(interface: 3))])
        }

        @Test func aQuestionHasTheAddressAndItsInterface() {
            let four = SocketAddress.ipv4(address: 0xC000_0201, port: 443)
            #expect(
                RouteMessages.question(four, through: 5) == [
                    0x2C, 0, 0, 0, 0x1A, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0,
                    2, 32, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
                    8, 0, 1, 0, 192, 0, 2, 1,
                    8, 0, 4, 0, 5, 0, 0, 0,
                ])
            let six = SocketAddress.ipv6(high: 0xFE80_0000_0000_0000, low: 1, scope: 4, port: 1)
            let question = RouteMessages.question(six, wantsEntry: true) ?? []
            #expect(question.count == 56 && question[16] == 10 && question[17] == 128 && question[25] == 0x20)
            #expect(question[32..<34] == [0xFE, 0x80] && question[48...] == [8, 0, 4, 0, 4, 0, 0, 0])
            #expect(RouteMessages.question(.unix(path: "/a")) == nil)
        }

        // MARK: What changes the way to an address

        private static func changes(_ known: inout NetworkChanges, _ bytes: [UInt8]) -> Bool {
            bytes.withRawSpan { known.received($0) }
        }

        @Test func onlyNewStatesOfALinkAreChanges() {
            var known = NetworkChanges()
            #expect(Self.changes(&known, Self.link))
            #expect(!Self.changes(&known, Self.link))
            var other = Self.link
            other[26] = 0
            #expect(Self.changes(&known, other) && !Self.changes(&known, other))
            #expect(Self.changes(&known, Self.overrun))
            // Nothing is known after lost messages.
            #expect(Self.changes(&known, other))
        }

        @Test func addressesRoutesAndLostMessagesAreChanges() {
            var known = NetworkChanges()
            #expect(!Self.changes(&known, Self.tentative) && !Self.changes(&known, Self.refusal))
            for bytes in [Self.route, Self.barrier, Self.overrun, Array(Self.route.dropLast())] {
                #expect(Self.changes(&known, bytes))
            }
            // A change is not missed behind a message that is none.
            #expect(Self.changes(&known, Self.tentative + Self.route + Self.refusal))
        }

        @Test func linksBeyondTheLimitAreNotKept() {
            var known = NetworkChanges()
            var bytes = Self.link
            for number in 0...NetworkChanges.linkLimit {
                (bytes[20], bytes[21]) = (UInt8(number & 0xFF), UInt8(number >> 8))
                #expect(Self.changes(&known, bytes))
            }
            #expect(Self.changes(&known, bytes))
        }
    }
#endif

@Suite("Name servers, resolv.conf(5)")
struct NameServerTests {
    @Test func serversAndTrustAreRead() {
        let servers = NameServers(
            "# comment\nsearch a.test\nnameserver 192.0.2.53\n nameserver\t2001:db8::53 \nnameserver what\n"
                + "nameserver 127.0.0.53\nnameserver 192.0.2.54\noptions edns0 trust-ad\n")
        #expect(
            servers.addresses == [
                .ipv4(address: 0xC000_0235, port: 53),
                .ipv6(high: 0x2001_0DB8_0000_0000, low: 0x53, scope: 0, port: 53),
                .ipv4(address: 0x7F00_0035, port: 53),
            ])
        #expect(servers.areTrusted)
        #expect(NameServers("").addresses.isEmpty && !NameServers("nameserver 127.0.0.1\n#options trust-ad").areTrusted)
    }
}

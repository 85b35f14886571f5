import ByteKernels
import StreamTransport
import Testing

/// Messages as another implementation of the protocol (jeepney 0.9.0) writes them, in both byte orders.
enum BusVector {
    static let metered = [
        "6c02010108000000090000002f000000050175000700000006017300040000003a312e350000000007017300040000003a312e3200000000"
            + "08016700017600000175000003000000",
        "4202010100000008000000090000002f050175000000000706017300000000043a312e350000000007017300000000043a312e3200000000"
            + "08016700017600000175000000000003",
    ]
    static let name = [
        "6c0201010e0000000a0000002f000000050175000800000006017300040000003a312e350000000007017300040000003a312e3200000000"
            + "080167000176000001730000050000007777616e3000",
        "420201010000000e0000000a0000002f050175000000000806017300000000043a312e350000000007017300000000043a312e3200000000"
            + "080167000176000001730000000000057777616e3000",
    ]
    static let devices = [
        "6c0201013d0000000b00000030000000050175000600000006017300040000003a312e350000000007017300040000003a312e3200000000"
            + "0801670002616f0039000000290000002f6f72672f667265656465736b746f702f4e6574776f726b4d616e616765722f446576696365"
            + "732f31000000040000002f642f3200",
        "420201010000003d0000000b00000030050175000000000606017300000000043a312e350000000007017300000000043a312e3200000000"
            + "0801670002616f0000000039000000292f6f72672f667265656465736b746f702f4e6574776f726b4d616e616765722f446576696365"
            + "732f31000000000000042f642f3200",
    ]
    /// PropertiesChanged of a device.
    static let signal = [
        "6c040101480000000c0000007600000001016f00040000002f642f3200000000020173001f0000006f72672e667265656465736b746f702e"
            + "444275732e50726f7065727469657300030173001100000050726f706572746965734368616e67656400000000000000070173000400"
            + "00003a312e3200000000080167000873617b73767d6173000000250000006f72672e667265656465736b746f702e4e6574776f726b4d"
            + "616e616765722e44657669636500000014000000070000004d65746572656400017500000100000000000000",
        "42040101000000480000000c0000007601016f00000000042f642f3200000000020173000000001f6f72672e667265656465736b746f702e"
            + "444275732e50726f7065727469657300030173000000001150726f706572746965734368616e67656400000000000000070173000000"
            + "00043a312e3200000000080167000873617b73767d6173000000000000256f72672e667265656465736b746f702e4e6574776f726b4d"
            + "616e616765722e44657669636500000000000014000000074d65746572656400017500000000000100000000",
    ]
    static let error =
        "6c030101110000000d0000007700000004017300290000006f72672e667265656465736b746f702e444275732e4572726f722e5365727669"
        + "6365556e6b6e6f776e00000000000000050175000500000006017300040000003a312e350000000007017300140000006f72672e6672"
        + "65656465736b746f702e444275730000000008016700017300000c0000006e6f2073756368206e616d6500"
    static let get =
        "6c01020138000000020000007800000001016f00040000002f642f3200000000020173001f0000006f72672e667265656465736b746f702e"
        + "444275732e50726f706572746965730003017300030000004765740000000000060173001e0000006f72672e667265656465736b746f"
        + "702e4e6574776f726b4d616e6167657200000801670002737300250000006f72672e667265656465736b746f702e4e6574776f726b4d"
        + "616e616765722e446576696365000000070000004d65746572656400"
    static let hello =
        "6c01020100000000010000006d00000001016f00150000002f6f72672f667265656465736b746f702f444275730000000201730014000000"
        + "6f72672e667265656465736b746f702e4442757300000000030173000500000048656c6c6f0000000601730014000000"
        + "6f72672e667265656465736b746f702e4442757300000000"

    static func bytes(_ hex: String) -> [UInt8] {
        let digits = Array(hex)
        return stride(from: 0, to: digits.count, by: 2).map { UInt8(String(digits[$0...($0 + 1)]), radix: 16) ?? 0 }
    }
}

@Suite("Messages of a bus, D-Bus specification")
struct BusMessageTests {
    @Test(arguments: [0, 1])
    func bothByteOrdersAreRead(_ order: Int) throws {
        let metered = try BusMessage(BusVector.bytes(BusVector.metered[order]))
        #expect(metered.kind == .reply && metered.answers == 7)
        #expect(try metered.number() == 3)
        let name = try BusMessage(BusVector.bytes(BusVector.name[order]))
        #expect(name.answers == 8)
        #expect(try name.text() == "wwan0")
        let devices = try BusMessage(BusVector.bytes(BusVector.devices[order]))
        #expect(
            try devices.objectPaths(limit: 9) == ["/org/freedesktop/NetworkManager/Devices/1", "/d/2"])
        #expect(try devices.objectPaths(limit: 1).count == 1)
        let signal = try BusMessage(BusVector.bytes(BusVector.signal[order]))
        #expect(signal.kind == .signal && signal.answers == nil && signal.member == "PropertiesChanged")
        #expect(signal.interface == "org.freedesktop.DBus.Properties")
    }

    @Test func bodiesOfAnotherTypeAreRefused() throws {
        let (metered, name) = (
            try BusMessage(BusVector.bytes(BusVector.metered[0])), try BusMessage(BusVector.bytes(BusVector.name[0]))
        )
        #expect(throws: BusViolation.malformed) { try metered.text() }
        #expect(throws: BusViolation.malformed) { try name.number() }
        #expect(throws: BusViolation.malformed) { try metered.objectPaths(limit: 1) }
    }

    @Test func callsAreWrittenAsByOthers() {
        let bus = "org.freedesktop.DBus"
        let hello = BusCall(destination: bus, path: "/org/freedesktop/DBus", interface: bus, member: "Hello")
        #expect(hello.encoded(serial: 1) == BusVector.bytes(BusVector.hello))
        let get = BusCall(
            destination: "org.freedesktop.NetworkManager", path: "/d/2", interface: "org.freedesktop.DBus.Properties",
            member: "Get", arguments: ["org.freedesktop.NetworkManager.Device", "Metered"])
        #expect(get.encoded(serial: 2) == BusVector.bytes(BusVector.get))
        var silent = hello
        silent.wantsReply = false
        #expect(silent.encoded(serial: 1)[2] == 3)
    }

    /// The specification's example of three strings, each aligned to four bytes.
    @Test func stringsAreAligned() throws {
        let little: [UInt8] = [
            3, 0, 0, 0, 0x66, 0x6F, 0x6F, 0, 1, 0, 0, 0, 0x2B, 0, 0, 0, 3, 0, 0, 0, 0x62, 0x61, 0x72, 0,
        ]
        var reader = BusReader(little, isBigEndian: false)
        #expect(try [reader.string(), reader.string(), reader.string()] == ["foo", "+", "bar"])
        #expect(throws: BusViolation.malformed) { try reader.string() }
        // A length beyond the end, no NUL behind the text, and no UTF-8.
        for (offset, byte): (Int, UInt8) in [(0, 4), (3, 0xFF), (7, 1), (4, 0xFF)] {
            var bytes = little
            bytes[offset] = byte
            var reader = BusReader(bytes, isBigEndian: false)
            #expect(throws: BusViolation.malformed) { try reader.string() }
        }
    }

    /// Any byte of any message may be wrong: there is a message, or an error.
    @Test func changedBytesNeverTrap() {
        let vectors =
            BusVector.metered + BusVector.name + BusVector.devices + BusVector.signal + [
                BusVector.error, BusVector.get,
            ]
        var refused = 0
        for vector in vectors.map({ BusVector.bytes($0) }) {
            for index in vector.indices {
                for byte: UInt8 in [0, 1, 7, 0x7F, 0x80, 0xFF] {
                    var bytes = vector
                    bytes[index] = byte
                    do throws(BusViolation) {
                        let message = try BusMessage(bytes)
                        _ = try message.objectPaths(limit: 4)
                    } catch {
                        refused += 1
                    }
                }
                #expect(throws: BusViolation.self) { try BusMessage(Array(vector.prefix(index))) }
            }
        }
        #expect(refused > 1000)
    }
}

@Suite("Conversations with a bus, D-Bus specification")
struct BusConversationTests {
    /// All events of `input`, which arrives in pieces.
    private static func events(_ input: [UInt8], pieces: Int) throws -> [String] {
        var conversation = BusConversation()
        var (rest, found) = (input[...], [String]())
        while !rest.isEmpty {
            Array(rest.prefix(pieces)).withRawSpan { conversation.bytesReceived($0) }
            rest = rest.dropFirst(pieces)
            while let event = try conversation.nextEvent() {
                switch event {
                case .send(let bytes): found.append(String(decoding: bytes, as: UTF8.self))
                case .opened: found.append("opened")
                case .message(let message): found.append("\(message.kind) \(message.answers ?? 0)")
                }
            }
        }
        return found
    }

    private static let open = Array("DATA\r\nOK 1234deadbeef\r\n".utf8)

    @Test(arguments: [1, 2, 7, 100, 10_000])
    func messagesFollowTheAuthentication(_ pieces: Int) throws {
        let messages = BusVector.bytes(BusVector.error) + BusVector.bytes(BusVector.devices[1])
        let events = try Self.events(Self.open + messages, pieces: pieces)
        #expect(events == ["DATA\r\n", "opened", "error 5", "reply 6"])
        #expect(try Self.events(Array("OK 1234deadbeef\r\n".utf8), pieces: pieces) == ["opened"])
    }

    @Test func refusalsAndNonsenseEndTheConversation() {
        let cases: [(String, BusViolation)] = [
            ("REJECTED EXTERNAL\r\n", .refused), ("DATA\r\nREJECTED\r\n", .refused), ("ERROR \"no\"\r\n", .refused),
            ("DATA\r\nDATA\r\n", .malformed), ("OK 1\n", .malformed), ("HTTP/1.1 400 Bad Request\r\n", .malformed),
            (String(repeating: "A", count: BusConversation.lineLimit), .tooLong),
            ("OK " + String(repeating: "A", count: BusConversation.lineLimit) + "\r\n", .tooLong),
        ]
        for (text, violation) in cases {
            #expect(throws: violation) { try Self.events(Array(text.utf8), pieces: 10_000) }
        }
    }

    @Test func longMessagesAreRefusedByTheirHead() {
        for (offset, value) in [(5, UInt8(0xFF)), (7, 0x7F), (7, 0xFF), (14, 4), (15, 0xFF)] {
            var head = Array(BusVector.bytes(BusVector.error).prefix(16))
            head[offset] = value
            let isLong = offset != 5
            if isLong { #expect(throws: BusViolation.tooLong) { try Self.events(Self.open + head, pieces: 99) } }
        }
        var other = BusVector.bytes(BusVector.error)
        other[3] = 2
        #expect(throws: BusViolation.malformed) { try Self.events(Self.open + other, pieces: 99) }
        other[0] = 0
        #expect(throws: BusViolation.malformed) { try Self.events(Self.open + other, pieces: 99) }
    }
}

@Suite("Addresses of a bus, D-Bus specification")
struct BusAddressTests {
    @Test(arguments: [
        ("unix:path=/run/dbus/system_bus_socket", SocketAddress?.some(.unix(path: "/run/dbus/system_bus_socket"))),
        ("unix:path=/tmp/a%20b,guid=0123", .unix(path: "/tmp/a b")), ("unix:guid=1,path=/a", .unix(path: "/a")),
        ("unix:abstract=/tmp/dbus-x", .unix(path: "@/tmp/dbus-x")),
        ("tcp:host=localhost,port=1;unix:path=/b", .unix(path: "/b")),
        ("", nil), ("unix:", nil), ("unix:path=", nil), ("unix:path=/a%0", nil), ("unix:path=/a%zz", nil),
        ("unix:path=/a%00b", nil), ("unix:path=%FF", nil), ("unix:path=/a%+1", nil), ("autolaunch:", nil),
    ])
    func firstUnixSocketIsUsed(_ text: String, _ address: SocketAddress?) {
        #expect(BusAddress.socket(text) == address)
    }

    @Test func longTextsAreIgnored() {
        #expect(BusAddress.socket("unix:path=/a" + String(repeating: ";", count: 5000)) == nil)
    }
}

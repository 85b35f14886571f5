import HTTPSemantics
import HTTPTypes
import Testing

@Suite("Fields of resumable uploads, draft-ietf-httpbis-resumable-upload")
struct UploadFieldTests {
    private static let now = HTTPDate(seconds: 1000)

    static func fields(_ lines: (String, String)...) -> HTTPFields {
        var fields = HTTPFields()
        for (name, value) in lines {
            if let name = HTTPField.Name(name) { fields.append(HTTPField(name: name, value: value)) }
        }
        return fields
    }

    @Test(arguments: [
        ("0", Int64?(0)), ("100", 100), (" 7 ", 7), ("7;a=1", 7), ("999999999999999", 999_999_999_999_999),
        ("1000000000000000", nil), ("-1", nil), ("", nil), ("1.0", nil), ("\"1\"", nil), ("?1", nil), ("1, 2", nil),
        ("0x10", nil), ("+1", nil),
    ])
    func offsetIsANonNegativeInteger(_ text: String, _ offset: Int64?) {
        #expect(UploadState(Self.fields(("Upload-Offset", text)), now: Self.now).offset == offset)
    }

    @Test func repeatedFieldIsIgnored() {
        #expect(UploadState(Self.fields(("Upload-Offset", "1"), ("Upload-Offset", "1")), now: Self.now).offset == nil)
        #expect(
            UploadState(Self.fields(("Upload-Complete", "?1"), ("Upload-Complete", "?1")), now: Self.now).isComplete
                == nil)
    }

    @Test(arguments: [
        ("Upload-Complete", "?1", Bool?(true)), ("Upload-Complete", "?0", false), ("Upload-Complete", "1", nil),
        ("Upload-Complete", "true", nil), ("Upload-Complete", "?1;x", true), ("Upload-Incomplete", "?0", true),
        ("Upload-Incomplete", "?1", false), ("Upload-Incomplete", "?2", nil),
    ])
    func completenessIsABooleanOfEitherName(_ name: String, _ text: String, _ isComplete: Bool?) {
        #expect(UploadState(Self.fields((name, text)), now: Self.now).isComplete == isComplete)
    }

    @Test(arguments: [
        ("max-size=10, max-append-size=5", Int64?(10), Int64?(5)), ("max-append-size=5;a=b", nil, 5),
        ("max-age=60, min-size=1,min-append-size=2", nil, nil), ("max-append-size=0", nil, nil),
        ("max-size=10, max-append-size=?1", nil, nil), ("max-size=10, max-age", nil, nil),
        ("max-size=10, max-age=\"x\"", nil, nil), ("max-size=10, other=\"a,b\", more", 10, nil), ("", nil, nil),
        ("max-size=1, max-size=2", 2, nil), ("max-size=1, \u{E9}=2", nil, nil),
    ])
    func limitsAreADictionaryOfIntegers(_ text: String, _ size: Int64?, _ partSize: Int64?) {
        let limits = UploadState(Self.fields(("Upload-Limit", text)), now: Self.now).limits
        #expect(limits.size == size && limits.partSize == partSize)
    }

    @Test(arguments: [
        ("max-age=60", Int64?(1060)), ("max-age=0", 1000), ("max-age=999999999999999", HTTPDate.latest.seconds),
        ("max-age=60, max-size=?1", nil), ("max-age=-1", nil), ("max-age=1.5", nil), ("max-size=1", nil),
    ])
    func ageIsTheRestOfTheLifetime(_ text: String, _ expiry: Int64?) {
        #expect(UploadState(Self.fields(("Upload-Limit", text)), now: Self.now).limits.expiry?.seconds == expiry)
    }

    @Test func versionsHaveTheFieldsOfTheirRevision() {
        let part = UploadPart(offset: 5, length: 7, isLast: true)
        for version in UploadVersion.allCases {
            let (creation, append) = (version.creationFields(length: 12), version.fields(of: part))
            let name = version == .three ? "Upload-Incomplete" : "Upload-Complete"
            let values = Dictionary(uniqueKeysWithValues: append.map { ($0.name.rawName, $0.value) })
            #expect(values[name] == (version == .three ? "?0" : "?1") && values["Upload-Offset"] == "5")
            #expect(values["Upload-Draft-Interop-Version"] == "\(version.rawValue)")
            #expect(append[.contentType] == (version.rawValue >= 6 ? "application/partial-upload" : nil))
            #expect(creation.contains { $0.name.rawName == "Upload-Length" } == (version.rawValue >= 7))
            let names = creation.map(\.name.rawName)
            #expect(names.contains(name) && !names.contains("Upload-Offset"))
            // Servers refuse more.
            #expect(version.offsetFields.count == 1)
        }
        #expect(UploadVersion.newest == .nine)
        let open = UploadVersion.nine.fields(of: UploadPart(offset: 0, length: 7, isLast: false))
        #expect(open.contains { $0.name.rawName == "Upload-Complete" && $0.value == "?0" })
    }

    @Test(arguments: ["Upload-Complete", "upload-incomplete", "Upload-Offset", "Upload-Length", "Tus-Resumable"])
    func requestThatSpeaksTheProtocolItselfIsRecognized(_ name: String) {
        #expect(UploadVersion.isSpoken(by: Self.fields((name, "1"))))
    }

    @Test func otherRequestsDoNotSpeakTheProtocol() {
        let fields = Self.fields(("Upload-Draft-Interop-Version", "6"), ("Content-Type", "text/plain"))
        #expect(!UploadVersion.isSpoken(by: fields) && UploadVersion.isNamed(by: fields))
        #expect(UploadVersion(fields) == .six && UploadVersion(Self.fields()) == nil)
        #expect(UploadVersion(Self.fields(("Upload-Draft-Interop-Version", "2"))) == nil)
        #expect(UploadVersion(Self.fields(("Upload-Draft-Interop-Version", "999999999999999"))) == nil)
    }
}

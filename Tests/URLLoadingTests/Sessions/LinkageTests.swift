import Foundation
import Testing
import URLLoading

@Suite("Linked libraries")
struct LinkageTests {
    @Test func libraryLinksNeitherFoundationNetworkingNorLibcurl() throws {
        // A file of /proc has no known length.
        let file = try FileHandle(forReadingFrom: URL(filePath: "/proc/self/maps"))
        let maps = String(decoding: try file.readToEnd() ?? Data(), as: UTF8.self)
        #expect(maps.contains("libFoundation"), "the list of libraries was not read")
        #expect(!maps.contains("FoundationNetworking") && !maps.contains("libcurl"))
    }
}

import Foundation
#if canImport(URLLoading)
    import URLLoading
#endif

/// Nothing runs here: that the code of the articles compiles is what it is for.
@main
enum Program {
    static func main() {}
}

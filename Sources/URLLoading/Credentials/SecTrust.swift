/// The stand-in for `SecTrust`.
public typealias SecTrust = ServerTrust

/// What the help texts of all these commands say.
enum ControlHelp {
    static let exitCodes = """
        EXIT CODES
          0    done
          64   wrong usage, found here or by the gateway
          65   what was to be sent is too long, or of a type that is not taken
          66   there is no such thing, or it is over
          69   no control plane answers there
          70   a fault of sluice or of the gateway
          74   standard input or output failed
          75   not now: try again; or nothing came in time
          76   what answers is no control plane of this version
          77   not allowed: no token, or one without the scope
          78   a configuration is not right, or a file cannot be used
          79   TLS with the control plane failed
          80   what the gateway was to reach refused or failed
          81   not in this state, or changed by somebody else
          130  interrupted
        """
}

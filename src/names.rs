//! Enums whose variants have names for users.

/// Defines an enum with the name of each variant beside it. The function that returns the name
/// stands in front of the enum, with its doc.
macro_rules! named {
    (
        $(#[$of_function:meta])* $name:ident;
        $(#[$of_enum:meta])* pub enum $Enum:ident { $($(#[$of_variant:meta])* $Variant:ident = $text:literal,)+ }
    ) => {
        $(#[$of_enum])*
        pub enum $Enum {
            $($(#[$of_variant])* $Variant,)+
        }

        impl $Enum {
            $(#[$of_function])*
            pub const fn $name(self) -> &'static str {
                match self {
                    $(Self::$Variant => $text,)+
                }
            }
        }
    };
}
pub(crate) use named;

/// Writes values of a type by their names, padded as the format asks for.
macro_rules! written_by_name {
    ($Type:ty) => {
        impl std::fmt::Display for $Type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.name())
            }
        }
    };
}
pub(crate) use written_by_name;

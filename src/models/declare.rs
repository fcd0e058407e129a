//! The attributes that all models share.

/// Declares the structs of a model in camelCase. Every field is optional, and the output leaves out
/// empty fields.
macro_rules! model {
    ($(
        $(#[$about:meta])*
        pub struct $name:ident {
            $($(#[$field_about:meta])* pub $field:ident: $type:ty,)*
        }
    )*) => {$(
        $(#[$about])*
        #[derive(Clone, Debug, Default, PartialEq, ::serde::Serialize, ::serde::Deserialize, ::schemars::JsonSchema)]
        #[serde(rename_all = "camelCase", default)]
        pub struct $name {
            $(
                $(#[$field_about])*
                #[serde(skip_serializing_if = "crate::models::is_absent")]
                pub $field: $type,
            )*
        }
    )*};
}
